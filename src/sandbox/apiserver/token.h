/*
 * token: short-lived credentials of service accounts, as TokenRequest makes them.
 *
 * A token is a JWT with the claims that the real server writes: the holder, the expiry and the UID
 * of the service account, so that a recreated account does not inherit it. The server signs it with
 * a key of its own and remembers no tokens.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

/* Answers POST …/serviceaccounts/<name>/token. */
struct status *verb_token(struct request_ctx *c);

/* True when this server made the token for `audience`, its time is not over and its service account
 * is there; `*ret_user` is "system:serviceaccount:<namespace>:<name>". */
bool token_verify(struct apiserver *s, struct str token, struct str audience, struct arena *out,
                  struct str *ret_user);

/* For whom a token is when its request does not say: the API server itself. */
#define TOKEN_AUDIENCE STR("https://kubernetes.default.svc.cluster.local")
