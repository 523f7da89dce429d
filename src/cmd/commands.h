/*
 * commands: the subcommands, one file each.
 */
#pragma once

#include "cmd/command.h"

extern const struct command command_abort;
extern const struct command command_approve;
extern const struct command command_bridge;
extern const struct command command_check;
extern const struct command command_complete;
extern const struct command command_controller;
extern const struct command command_convert;
extern const struct command command_crds;
extern const struct command command_demo;
extern const struct command command_explain;
extern const struct command command_hold;
extern const struct command command_limits;
extern const struct command command_pause;
extern const struct command command_rbac;
extern const struct command command_reference;
extern const struct command command_request;
extern const struct command command_history;
extern const struct command command_rerun;
extern const struct command command_resume;
extern const struct command command_run;
extern const struct command command_run_on_host;
extern const struct command command_sandbox;
extern const struct command command_status;
extern const struct command command_templates;
extern const struct command command_uninstall;
extern const struct command command_withdraw;
