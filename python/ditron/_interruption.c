/*===- _interruption.c - Ctrl-C while simulated GPUs run ------------------------------------------------------------------===*
 *
 * Python's handler of SIGINT sets a flag that the interpreter looks at when a call returns; one that runs a kernel may never. While
 * such a call runs, a handler of ours stands in front of it: it ends the run, then calls Python's. So the call fails with a report of
 * what waited for what, and the KeyboardInterrupt that Python raises then carries it. Where the program has a handler of its own,
 * and in other threads than the main one, nothing is touched (_interruption.py).
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native.h"

#include <signal.h>

static PyObject *may_interrupt;
static struct sigaction pythons;
/* Calls of the main thread that are inside of each other; the outermost one sets the handler. */
static int depth;
static volatile sig_atomic_t was_interrupted;

void set_interruptible(PyObject *function) {
  Py_INCREF(function);
  may_interrupt = function;
}

static void on_interruption(int number, siginfo_t *information, void *context) {
  was_interrupted = 1;
  ditron.interrupt(number);
  if (pythons.sa_flags & SA_SIGINFO)
    pythons.sa_sigaction(number, information, context);
  else if (pythons.sa_handler != SIG_DFL && pythons.sa_handler != SIG_IGN)
    pythons.sa_handler(number);
}

/* 1 in the main thread when Python's own handler is set; -1 for an exception, as by Ctrl-C itself. */
static int is_allowed(void) {
  PyObject *answer = PyObject_CallFunction(may_interrupt, NULL);
  const int allowed = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return allowed;
}

int begin_interruptible(void) {
  const int allowed = is_allowed();
  if (allowed <= 0)
    return allowed;
  if (depth == 0) {
    struct sigaction ours = {0};
    ours.sa_sigaction = on_interruption;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    was_interrupted = 0;
    if (sigaction(SIGINT, &ours, &pythons) != 0)
      return 0;
  }
  ++depth;
  return 1;
}

/* The KeyboardInterrupt of Python's handler, with the text of the call's failure, which is its cause. */
static void raise_interruption(ditron_status_t status) {
  raise_status(status);
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  PyObject *interruption = PyObject_CallFunction(PyExc_KeyboardInterrupt, "N", PyObject_Str(error));
  if (!interruption) {
    Py_XDECREF(error);
    return;
  }
  PyException_SetCause(interruption, error); /* takes the reference */
  PyErr_SetObject(PyExc_KeyboardInterrupt, interruption);
  Py_DECREF(interruption);
}

PyObject *end_interruptible(int was_interruptible, ditron_status_t status) {
  if (was_interruptible && --depth == 0)
    sigaction(SIGINT, &pythons, NULL);
  if (status == DITRON_OK)
    return Py_None;
  /* First, lest it comes while the exception of the failure is made. */
  if (was_interruptible && was_interrupted && PyErr_CheckSignals() < 0) {
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
      return NULL; /* of another signal's handler */
    PyErr_Clear();
    raise_interruption(status);
    return NULL;
  }
  return raise_status(status);
}
