"""When Ctrl-C may end a simulated run (_interruption.c)."""
import signal
import threading


def may_interrupt():
    """Whether Ctrl-C means a KeyboardInterrupt of this thread: Python gives it to the main thread, and a program's own handler decides itself."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
