"""python -m ditron.as_triton SCRIPT ARGUMENTS..., or -m MODULE ARGUMENTS..."""
import os
import runpy
import sys

import ditron.as_triton  # noqa: F401

USAGE = "usage: python -m ditron.as_triton (SCRIPT | -m MODULE) [ARGUMENTS...]"


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print(f"ditron.as_triton: -m needs the name of a module\n{USAGE}", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(arguments[0]):
        print(f"ditron.as_triton: there is no file {arguments[0]}\n{USAGE}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


sys.exit(main())
