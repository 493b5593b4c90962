#!/usr/bin/env python3
"""Writes an artificial older or newer version of the contract's header.

older: every struct lacks its last eight bytes of fields, and a few functions are not there yet.
newer: every struct has eight more bytes at its end, in a field that means something when it is not zero.
Usage: vary_header.py older|newer HEADER OUTPUT
"""
import re
import sys

FUNCTIONS_OF_LATER = ("inlay_session_tokens", "inlay_estimate_memory", "inlay_estimate_options_init")
STRUCT = re.compile(r"(typedef struct (inlay_\w+) \{\n)(.*?)(\} \2;)", re.S)
FIELD = re.compile(r"^    (?P<type>[\w ]+?[ *]+)(?P<name>\w+);.*\n", re.M)


def size_of(field):
    return 4 if field["type"].strip() in ("uint32_t", "int32_t", "float") else 8


def older(match):
    fields = list(FIELD.finditer(match[3]))
    if sum(map(size_of, fields)) <= 8:
        return match[0]
    first_cut = fields[-1] if size_of(fields[-1]) == 8 else fields[-2]
    return match[1] + match[3][: first_cut.start()] + match[4]


def newer(match):
    return match[1] + match[3] + "    uint64_t later_field;\n" + match[4]


def main():
    which, header, output = sys.argv[1:]
    text = open(header, encoding="utf-8").read()
    text, n_structs = STRUCT.subn({"older": older, "newer": newer}[which], text)
    if n_structs < 5:
        sys.exit("vary_header.py does not understand the header any more")
    if which == "older":
        for function in FUNCTIONS_OF_LATER:
            text = re.sub(r"INLAY_API [^;]*\b%s\([^;]*;\n" % function, "", text)
    open(output, "w", encoding="utf-8").write(text)


main()
