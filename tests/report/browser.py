# SPDX-License-Identifier: Apache-2.0
"""Drives headless Chromium over the DevTools protocol, with Python's standard library alone.

    with Browser() as browser:
        page = browser.open("report.html", width=360, height=800)
        page.run("document.title")

A page keeps what its console says and the exceptions that nobody caught (Page.complaints).
"""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_program():
    """The path of a Chromium; None: there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Socket:
    """A client of the WebSocket protocol (RFC 6455) for text messages to one server on this machine."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.splitlines()[0]:
            raise OSError(f"no WebSocket: {head.splitlines()[0]}")

    def _more(self):
        received = self.connection.recv(1 << 20)
        if not received:
            raise OSError("the browser closed the connection")
        return received

    def _take(self, count):
        while len(self.buffer) < count:
            self.buffer += self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, text):
        payload, mask = text.encode(), os.urandom(4)
        count = len(payload)
        length = (bytes([0x80 | count]) if count < 126 else
                  b"\xfe" + struct.pack(">H", count) if count < 1 << 16 else b"\xff" + struct.pack(">Q", count))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.connection.sendall(b"\x81" + length + mask + masked)

    def receive(self):
        """The next text message; fragments are joined, pings are not answered (the browser sends none)."""
        message = b""
        while True:
            first, second = self._take(2)
            count = second & 0x7F
            if count == 126:
                count = struct.unpack(">H", self._take(2))[0]
            elif count == 127:
                count = struct.unpack(">Q", self._take(8))[0]
            message += self._take(count)
            if first & 0x0F == 8:
                raise OSError("the browser ended the session")
            if first & 0x80:
                return message.decode()


class Page:
    """One tab."""

    def __init__(self, url):
        self.socket = Socket(url)
        self.last_id = 0
        self.complaints = []  # errors and warnings of the console, exceptions, and requests beyond the page itself
        self.is_loaded = False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _note(self, event):
        name, parameters = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif name == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif name == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif name == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:")):
            self.complaints.append("loads " + parameters["request"]["url"])
        elif name == "Page.loadEventFired":
            self.is_loaded = True

    def call(self, method, **parameters):
        self.last_id += 1
        self.socket.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") != self.last_id:
                self._note(message)
                continue
            if "error" in message:
                raise OSError(f"{method}: {message['error']}")
            return message["result"]

    def run(self, script):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def frame(self):
        """Waits until the browser has drawn what was changed."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def size(self, width, height, is_phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone)

    def media(self, theme="light", medium=""):
        """Without motion, so that nothing moves while a test looks at it."""
        features = [{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def key(self, key, text="", modifiers=0):
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "", modifiers=modifiers,
                      windowsVirtualKeyCode=code)
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.frame()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def screenshot(self, path, selector=None):
        clip = {}
        if selector:
            box = self.run(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                           "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}; })()")
            clip = {"clip": {**box, "scale": 1}, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def print_size(self):
        """Bytes of the page as PDF, without those of the encoding."""
        data = base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
        return len(data) if data.startswith(b"%PDF") else 0


class Browser:
    """A Chromium with a profile of its own, which goes with it."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tare-browser-")
        self.process = subprocess.Popen(
            [find_program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self.folder}", "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self._port()
        return self

    def _port(self):
        file = pathlib.Path(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if self.process.poll() is not None:
                raise OSError(f"the browser ended with {self.process.returncode}")
            if file.exists() and file.read_text().count("\n") >= 1:
                return int(file.read_text().split()[0])
            time.sleep(0.05)
        raise OSError("the browser did not start")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open(self, path, width=1280, height=900, theme="light", is_phone=False):
        """A page of its own, loaded and drawn. Page.open_ms is the time from the command to that."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request) as answer:
            page = Page(json.load(answer)["webSocketDebuggerUrl"])
        page.size(width, height, is_phone)
        page.media(theme)
        begin = time.monotonic()
        page.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while page.run("document.documentElement?.dataset.ready") != "true" or not page.is_loaded:
            time.sleep(0.01)
            if time.monotonic() - begin > 60:
                raise OSError(f"the page did not get ready: {page.complaints}")
        page.frame()
        page.open_ms = 1000 * (time.monotonic() - begin)
        return page
