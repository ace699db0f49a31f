#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the declarations of tare's C interface for ctypes, from the public headers.

usage: declare.py INCLUDE_FOLDER OUTPUT.py

The headers are the only place where a function, struct or number is written down. What this reader
does not understand is an error of the build, never a wrong declaration.
"""
import pathlib
import re
import sys

SCALARS = {"void": None, "bool": "c.c_bool", "int": "c.c_int", "unsigned": "c.c_uint", "char": "c.c_char",
           "unsigned char": "c.c_ubyte", "double": "c.c_double", "float": "c.c_float", "size_t": "c.c_size_t",
           "int32_t": "c.c_int32", "int64_t": "c.c_int64", "uint8_t": "c.c_uint8", "uint32_t": "c.c_uint32",
           "uint64_t": "c.c_uint64"}


class Unreadable(Exception):
    """A declaration of a form that this reader does not know."""


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


class Interface:
    """What the headers declare, in order."""

    def __init__(self):
        self.numbers, self.enums, self.opaque, self.structs, self.callbacks, self.functions = {}, {}, [], {}, {}, {}

    # --- reading ---

    def read(self, text):
        text = self.read_maps(without_comments(text))
        for name, value in re.findall(r"^#define (TARE_\w+) +\(?(-?\d+(?:\.\d+)?)\)?\s*$", text, flags=re.M):
            self.numbers[name] = float(value) if "." in value else int(value)
        text = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        for declaration in self.declarations(text):
            self.read_declaration(" ".join(declaration.split()))

    def read_maps(self, text):
        """Enums whose members come from a list: #define TARE_STATUS_MAP(X) X(OK, 0, "..") .."""
        rows = {}
        for name, body in re.findall(r"^#define (TARE_\w+_MAP)\(X\)((?:[^\n]*\\\n)+[^\n]*)$", text, flags=re.M):
            rows[name] = re.findall(r"X\((\w+), (\d+),", body)
        def members(match):
            return "{" + ", ".join(f"TARE_{name} = {value}" for name, value in rows[match.group(1)]) + "}"
        return re.sub(r"\{\s*#define \w+\(name, value, text\)[^\n]*\n\s*(TARE_\w+_MAP)\(\w+\)\s*#undef \w+\s*\}", members, text)

    @staticmethod
    def declarations(text):
        """Cuts at semicolons outside of braces; a brace without a partner ends extern "C"."""
        depth, start = 0, 0
        for i, char in enumerate(text):
            if char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth < 0:
                    return
            elif char == ";" and depth == 0:
                yield text[start:i]
                start = i + 1

    def read_declaration(self, text):
        if match := re.fullmatch(r"(?:typedef )?enum ?(\w*) ?\{(.*?)\} ?(\w*)", text):
            self.read_enum(match.group(3), match.group(2))
        elif match := re.fullmatch(r"typedef struct (\w+) \{(.*)\} (\w+)", text):
            self.structs[match.group(3)] = [self.field(item) for item in match.group(2).split(";") if item.strip()]
        elif match := re.fullmatch(r"typedef struct (\w+) (\w+)", text):
            self.opaque.append(match.group(2))
        elif match := re.fullmatch(r"typedef (.+?) ?\(\*(\w+)\)\((.*)\)", text):
            self.callbacks[match.group(2)] = (match.group(1), self.parameters(match.group(3)))
        elif match := re.fullmatch(r"TARE_API (.+?)(tare_\w+)\((.*)\)", text):
            self.functions[match.group(2)] = (match.group(1).strip(), self.parameters(match.group(3)))
        else:
            raise Unreadable(text)

    def read_enum(self, name, body):
        value = 0
        for item in filter(None, (part.strip() for part in body.split(","))):
            key, _, given = item.partition("=")
            if given:
                first, _, shift = given.partition("<<")
                value = int(first) << int(shift or 0)
            self.numbers[key.strip()] = value
            value += 1
        if name:
            self.enums[name] = True

    @staticmethod
    def split(text):
        """At commas outside of parentheses."""
        parts, depth = [""], 0
        for char in text:
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += char
        return [part.strip() for part in parts]

    def parameters(self, text):
        if text.strip() in ("", "void"):
            return []
        return [self.variable(part) for part in self.split(text)]

    def variable(self, text):
        """(name, C type); a pointer to a function has ((result, parameters)) for its type."""
        if match := re.fullmatch(r"(.+?) ?\(\*(\w+)\)\((.*)\)", text):
            return match.group(2), (match.group(1), self.parameters(match.group(3)))
        match = re.fullmatch(r"(.+?)(\w+)((?:\[\w*\])?)", text)
        if match is None:
            raise Unreadable(text)
        return match.group(2), match.group(1).strip() + match.group(3)

    def field(self, text):
        """A struct's line may declare several: const double *scale, *zero_point."""
        text = text.strip()
        if "(" in text:
            return [self.variable(text)]
        first, *others = self.split(text)
        name, kind = self.variable(first)
        fields = [(name, kind)]
        base = re.sub(r"[ *]*$", "", re.sub(r"\[.*", "", kind))
        for other in others:
            stars, name, array = re.fullmatch(r"(\**)(\w+)((?:\[\w*\])?)", other).groups()
            fields.append((name, f"{base} {stars}{array}".strip()))
        return fields

    # --- writing ---

    def type(self, kind):
        if isinstance(kind, tuple):
            return self.prototype(*kind)
        array = re.search(r"\[(\w+)\]$", kind)
        if array:
            size = array.group(1)
            return f"({self.type(kind[:array.start()])} * {self.numbers.get(size, size)})"
        kind = re.sub(r"\bconst\b", "", kind)
        stars = kind.count("*")
        base = re.sub(r"\[\]$", "", " ".join(kind.replace("*", " ").split()))
        base = base.removeprefix("struct ")
        if base == "char" and stars:
            return self.pointer("c.c_char_p", stars - 1)
        if base == "void" and stars:
            return self.pointer("c.c_void_p", stars - 1)
        if base in SCALARS:
            return self.pointer(SCALARS[base], stars)
        if base in self.enums:
            return self.pointer("c.c_int", stars)
        if base in self.structs or base in self.opaque:
            return self.pointer(f"t({base!r})", stars)
        if base in self.callbacks:
            return self.pointer(f"t({base!r})", stars)
        raise Unreadable(f"the type '{kind}'")

    @staticmethod
    def pointer(base, stars):
        for _ in range(stars):
            base = f"P({base})"
        return str(base)

    def prototype(self, result, parameters):
        # A text that a callback returns has to outlive the call: the callback returns its address.
        given = "c.c_void_p" if "*" in result else self.type(result)
        return f"c.CFUNCTYPE({', '.join([given] + [self.type(kind) for _, kind in parameters])})"

    def write(self):
        lines = [HEAD]
        lines += [f"{name} = {value}" for name, value in self.numbers.items()]
        lines += ["", "STRUCTS = {"]
        lines += [f"    {name!r}: None," for name in self.opaque]
        for name, rows in self.structs.items():
            fields = ", ".join(f"({field!r}, {self.type(kind)})" for row in rows for field, kind in row)
            lines.append(f"    {name!r}: lambda: [{fields}],")
        lines += ["}", "CALLBACKS = {"]
        lines += [f"    {name!r}: lambda: {self.prototype(*kind)}," for name, kind in self.callbacks.items()]
        lines += ["}", "FUNCTIONS = {"]
        for name, (result, parameters) in self.functions.items():
            kinds = ", ".join(self.type(kind) for _, kind in parameters)
            lines.append(f"    {name!r}: lambda: ({self.type(result)}, [{kinds}]),")
        lines += ["}", "PARAMETERS = {"]
        for name, (_, parameters) in self.functions.items():
            lines.append(f"    {name!r}: {tuple(name for name, _ in parameters)!r},")
        return "\n".join(lines + ["}", ""])


# A type is made when it is first used: most programs need few of them, and making all takes 20 ms.
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The C interface of tare, as python/declare.py read it in the headers. Not to be edited."""
import ctypes as c
import threading

P = c.POINTER
_making = threading.RLock()


def t(name):
    """A struct or callback type by its name in C."""
    with _making:
        made = globals().get(name)
        if made is None and name in CALLBACKS:
            made = globals()[name] = CALLBACKS[name]()
        elif made is None:
            made = globals()[name] = type(name, (c.Structure,), {"__slots__": ()})
            if STRUCTS[name] is not None: # its fields may point to itself
                made._fields_ = STRUCTS[name]()
        return made


def __getattr__(name):
    if name in STRUCTS or name in CALLBACKS:
        return t(name)
    raise AttributeError(name)

'''


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    interface = Interface()
    headers = sorted(pathlib.Path(sys.argv[1], "tare").glob("*.h"))
    for header in headers:
        try:
            interface.read(header.read_text(encoding="utf-8"))
        except Unreadable as error:
            sys.exit(f"{header}: cannot read: {error}")
    try:
        text = interface.write()
    except Unreadable as error:
        sys.exit(f"declare.py: cannot write: {error}")
    pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
