#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks into ELF binaries for what cmake/hardening.cmake asked of the compiler and the linker. Prints
# one line per fault; exit status 1 if there is any, 77 where binaries are of another kind.
# usage: check_hardened.sh BINARY..
set -eu
bad=0
fault() {
    echo "$binary: $1"
    bad=$((bad + 1))
}

# has TABLE PATTERN WHAT: a line of readelf's says so, or it is a fault.
has() { printf '%s\n' "$1" | grep -qE "$2" || fault "$3"; }
lacks() { ! printf '%s\n' "$1" | grep -qE "$2" || fault "$3"; }

check_headers() {
    has "$headers" '^ *Type: *DYN' 'is loaded at a fixed address (no PIE)'
    has "$headers" '^ *GNU_RELRO ' 'has no segment that becomes read-only (no RELRO)'
    has "$dynamic" '\((BIND_NOW|FLAGS_1|FLAGS)\).*(BIND_NOW|NOW)' \
        'resolves functions late, so its table of them stays writable (no BIND_NOW)'
    has "$headers" '^ *GNU_STACK .* RW +' 'does not say that its stack holds no code'
    lacks "$headers" '^ *(GNU_STACK|LOAD) .* RWE ' 'has memory that is writable and executable'
    lacks "$dynamic" '\((TEXTREL|RPATH|RUNPATH)\)' 'writes to its code, or names folders to load from'
}

# A program without a single array on a stack, or a copy of known size, would show neither.
check_guards() {
    has "$names" ' __stack_chk_fail' 'has no stack protector'
    has "$names" ' __[a-z]+_chk(@|$)' 'checks no copies (no FORTIFY)'
}

# Every exported function begins with a mark that jumps may end there; a page of stack that a function
# skips is touched. Only the code itself tells, and the start files of a C library may lack the mark.
check_code() {
    objdump -d --no-show-raw-insn "$binary" | awk -v binary="$binary" '
        /^[0-9a-f]+ <tare_[a-z0-9_]+(@@.*)?>:/ { waits = $2; functions++; next }
        waits != "" { if ($2 !~ /^endbr64/) { unmarked++; first = first == "" ? waits : first }; waits = "" }
        /orq +\$0x0,(0x[0-9a-f]+)?\(%rsp/ { probes++ }
        END {
            if (unmarked > 0 || functions == 0)
                print binary ": " unmarked + 0 " of " functions + 0 " exported functions are no marked targets of calls " first
            if (probes == 0) print binary ": skips pages of the stack (no stack-clash protection)"
            exit unmarked > 0 || functions == 0 || probes == 0
        }' || bad=$((bad + 1))
}

command -v readelf >/dev/null || { echo 'no readelf here'; exit 77; }
for binary in "$@"; do
    headers=$(readelf -hlW "$binary" 2>/dev/null) || { echo "$binary is not ELF"; exit 77; }
    dynamic=$(readelf -dW "$binary")
    names=$(readelf --dyn-syms -W "$binary")
    check_headers
    check_guards
    case $headers in
    *X86-64*) case $binary in *.so*) check_code ;; esac ;;
    esac
done
[ "$bad" -eq 0 ] || exit 1
echo "hardened: $*"
