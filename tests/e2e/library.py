"""library: libdrydock called from Python, as an actor calls it: library.py LIB KUBECONFIG CLIENT CALL [ARGUMENT…]

Prints [result, value, message] as JSON. A program of its own, because a sanitizer's library must be loaded first.
"""

import ctypes
import json
import sys


class Config(ctypes.Structure):
    _fields_ = [("client", ctypes.c_char_p), ("kubeconfig", ctypes.c_char_p), ("context", ctypes.c_char_p),
                ("leaving", ctypes.c_void_p), ("ctx", ctypes.c_void_p), ("reserved", ctypes.c_void_p * 4)]


class Error(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("message", ctypes.c_char * 512)]


class Target(ctypes.Structure):
    _fields_ = [("type", ctypes.c_char_p), ("space", ctypes.c_char_p), ("name", ctypes.c_char_p)]


class Request(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 254), ("state", ctypes.c_int), ("phase", ctypes.c_char * 32),
                ("reason", ctypes.c_char * 129), ("message", ctypes.c_char * 1025), ("position", ctypes.c_long)]


def main(path, kubeconfig, client, call, *arguments):
    lib = ctypes.CDLL(path)
    lib.drydock_new.restype = ctypes.c_void_p
    error = Error()
    handle = lib.drydock_new(ctypes.byref(Config(client.encode(), kubeconfig.encode())), ctypes.byref(error))
    if not handle:
        return [error.result, None, error.message.decode()]
    d, e, yes = ctypes.c_void_p(handle), ctypes.byref(error), ctypes.c_bool()
    target = ctypes.byref(Target(b"node", None, arguments[0].encode())) if arguments else None
    value = None
    if call == "enabled":
        result = lib.drydock_enabled(d, arguments[0].encode(), ctypes.byref(yes), e)
        value = yes.value
    elif call == "is_approved":
        result = lib.drydock_is_approved(d, target, None, ctypes.byref(yes), e)
        value = yes.value
    elif call == "update":
        states = ("Pending", "Approved", "InProgress", "Completed")
        result = lib.drydock_update_state(d, target, states.index(arguments[1]), e)
    elif call == "wait":
        result = lib.drydock_wait(d, target, None, ctypes.c_long(int(arguments[1])), e)
    elif call == "withdraw":
        result = lib.drydock_withdraw(d, target, e)
    else:
        request = Request()
        result = lib.drydock_find(d, target, ctypes.byref(request), e)
        value = [request.name.decode(), request.state, request.reason.decode(), request.position]
    lib.drydock_free(d)
    return [result, value, error.message.decode()]


print(json.dumps(main(*sys.argv[1:])))
