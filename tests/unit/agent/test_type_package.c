/* package: what apt-get is told, and what comes back. */
#include "tests/lib/agent_fixture.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"
#define APT                                                                                        \
    "/usr/bin/apt-get -q -y -o Dpkg::Options::=--force-confdef -o "                                \
    "Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 "
#define LEAN APT "--no-install-recommends "
#define HELD LEAN "--allow-change-held-packages "
#define INSTALL LEAN "install "
#define PACKAGE(name, want, state, version)                                                        \
    "Package: " name "\nStatus: " want " ok " state "\nArchitecture: amd64\nVersion: " version     \
    "\n\n"
#define BASE PACKAGE("dpkg", "install", "installed", "1.21")
#define STATUS "/var/lib/dpkg/status"
#define RESTORE ", meta: {onRemove: Restore}"
#define RESOURCE(more) "resources: [{name: a, type: package" more "}]"

static void machine(struct agent_fixture *f, const char *status, const struct agent_play *plays)
{
    agent_fixture_init(f);
    agent_write(f, STATUS, status);
    f->plays = plays;
    f->on_command = agent_play;
}

TEST(package_is_installed_in_a_window_and_taken_back)
{
    static const struct agent_play plays[] = {
        { .words = INSTALL "chrony curl",
          .files = { { STATUS, BASE PACKAGE("chrony", "install", "installed", "4.3")
                                   PACKAGE("curl", "install", "installed", "7.88") } } },
        { .words = LEAN "remove chrony curl",
          .files = { { STATUS, BASE PACKAGE("chrony", "deinstall", "config-files", "4.3") } } },
        { 0 },
    };
    static const char yaml[] = RESOURCE(", packages: [chrony, dpkg, curl]" RESTORE);
    struct agent_fixture f;
    machine(&f, BASE, plays);
    f.rules.allowed = DISRUPTION_NONE;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 1);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 2);
    agent_fixture_done(&f);
}

TEST(package_has_its_version_and_is_held)
{
    static const struct agent_play plays[] = {
        { .words = HELD "--allow-downgrades install chrony=4.2",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.2") } } },
        { .words = "/usr/bin/apt-mark hold chrony",
          .files = { { STATUS, PACKAGE("chrony", "hold", "installed", "4.2") } } },
        { .words = "/usr/bin/apt-mark unhold chrony",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.2") } } },
        { .words = HELD "--allow-downgrades install chrony=4.3",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.3") } } },
        { 0 },
    };
    static const char yaml[] =
        RESOURCE(", package: chrony, version: '4.2', allowDowngrade: true, hold: true" RESTORE);
    struct agent_fixture f;
    machine(&f, PACKAGE("chrony", "install", "installed", "4.3"), plays);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 2);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 4);
    CHECK_STR(agent_read(&f, STATUS), PACKAGE("chrony", "install", "installed", "4.3"));
    agent_fixture_done(&f);
}

#define SIMULATE LEAN "--simulate install chrony"

TEST(package_is_the_latest_that_apt_knows)
{
    static const struct agent_play old[] = {
        { .words = SIMULATE, .out = "Inst chrony [4.2] (4.3 Debian:12 [amd64])\n" },
        { .words = INSTALL "chrony",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.3") } } },
        { .words = "/usr/bin/apt-mark hold chrony",
          .files = { { STATUS, PACKAGE("chrony", "hold", "installed", "4.3") } } },
        { 0 },
    };
    static const struct agent_play latest[] = {
        { .words = SIMULATE, .out = "chrony is already the newest version (4.3).\n" },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, PACKAGE("chrony", "install", "installed", "4.2"), old);
    agent_noop(&f, RESOURCE(", package: chrony, state: latest"));
    CHECK_STR(agent_said(&f, "a"), "Noop");
    CHECK_EQ(f.command_n, 1);
    f.plays = latest;
    agent_run(&f, RESOURCE(", package: chrony, state: latest"));
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_fixture_done(&f);

    /* Not there at all: nothing is asked before. */
    static const struct agent_play missing[] = {
        { .words = HELD "install chrony",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.3") } } },
        { .words = "/usr/bin/apt-mark hold chrony",
          .files = { { STATUS, PACKAGE("chrony", "hold", "installed", "4.3") } } },
        { .words = HELD "--simulate install chrony", .out = "" },
        { 0 },
    };
    machine(&f, BASE, missing);
    agent_run(&f, RESOURCE(", package: chrony, state: latest, hold: true"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 3);
    agent_fixture_done(&f);
}

TEST(package_goes_with_or_without_its_configuration)
{
    static const struct agent_play plays[] = {
        { .words = LEAN "remove chrony",
          .files = { { STATUS, PACKAGE("chrony", "deinstall", "config-files", "4.3") } } },
        { .words = LEAN "purge chrony", .files = { { STATUS, BASE } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, PACKAGE("chrony", "install", "installed", "4.3"), plays);
    agent_run(&f, RESOURCE(", package: chrony, state: absent"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, RESOURCE(", package: chrony, state: absent"));
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_run(&f, RESOURCE(", package: chrony, state: purged"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 2);
    agent_fixture_done(&f);
}

TEST(package_after_an_interrupted_dpkg_lets_it_go_on_first)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/bin/dpkg --force-confdef --force-confold --configure -a",
          .files = { { STATUS, BASE PACKAGE("other", "install", "installed", "1") } } },
        { .words = INSTALL "chrony",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.3") } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, BASE PACKAGE("other", "install", "unpacked", "1"), plays);
    agent_run(&f, RESOURCE(", package: chrony"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 2);
    agent_fixture_done(&f);
}

static bool starts_nothing;

static void note_env(struct agent_fixture *f, const struct command_spec *command,
                     struct command_result *ret)
{
    starts_nothing = false;
    for (uint32_t i = 0; i < command->env_n; i++) {
        starts_nothing = starts_nothing || str_eq(command->env[i], STR("SYSTEMD_OFFLINE=1"));
    }
    ret->exit_code = 100;
    ret->out = STR("E: Unable to locate package chrony\n");
    (void)f;
}

TEST(package_starts_its_services_only_if_it_may)
{
    struct agent_fixture f;
    machine(&f, BASE, NULL);
    f.on_command = note_env;
    agent_run(&f, RESOURCE(", package: chrony"));
    CHECK_STR(agent_said(&f, "a"),
              "Failed: '/usr/bin/apt-get' failed (exit code 100): E: Unable to "
              "locate package chrony");
    CHECK(starts_nothing);
    agent_run(&f, RESOURCE(", package: chrony, noStart: false"));
    CHECK(!starts_nothing);
    agent_fixture_done(&f);
}

static void play_unit(struct agent_fixture *f, const struct unit_request *request,
                      struct unit_reply *ret)
{
    (void)request;
    bool there = str_contains(agent_read(f, STATUS), STR("chrony"));
    *ret = (struct unit_reply){ .load = there ? STR("loaded") : STR("not-found"),
                                .active = there ? STR("active") : STR("inactive"),
                                .file = STR("enabled") };
}

TEST(package_comes_after_its_sources_and_before_its_service)
{
    static const struct agent_play plays[] = {
        { .words = INSTALL "chrony",
          .files = { { STATUS, PACKAGE("chrony", "install", "installed", "4.3") },
                     { "/etc/apt/sources.list.d/own.list", "seen" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, BASE, plays);
    f.on_unit = play_unit;
    agent_mkdir(&f, "/etc/apt/sources.list.d");
    agent_run(&f, "resources:\n"
                  "- {name: service, type: service, unit: chrony}\n"
                  "- {name: package, type: package, package: chrony}\n"
                  "- {name: source, type: file, path: /etc/apt/sources.list.d/own.list, content: "
                  "deb}\n");
    CHECK_STR(agent_said(&f, "source"), "Ok, changed");
    CHECK_STR(agent_said(&f, "package"), "Ok, changed");
    CHECK_STR(agent_said(&f, "service"), "Ok");
    CHECK_STR(agent_read(&f, "/etc/apt/sources.list.d/own.list"), "seen");
    agent_fixture_done(&f);
}

TEST(package_that_carries_pods_waits_until_the_node_is_out_of_service)
{
    struct agent_fixture f;
    machine(&f, BASE, NULL);
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, RESOURCE(", package: containerd"));
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    agent_fixture_done(&f);
}

TEST(package_names_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: package}", "Failed: fields 'package' and 'packages': want one of them" },
        { "{name: a, type: package, package: -x}",
          "Failed: field 'package': found '-x', want a name such as chrony" },
        { "{name: a, type: package, packages: [dpkg, 'a b']}",
          "Failed: field 'packages': found 'a b', want a name such as chrony" },
        { "{name: a, type: package, packages: [dpkg], version: '1'}",
          "Failed: field 'version': want a version such as 1.2-3, beside 'package' and 'state: "
          "installed'" },
        { "{name: a, type: package, package: dpkg, state: absent, hold: true}",
          "Failed: field 'hold': found true beside 'state: absent'" },
        { "{name: a, type: package, package: dpkg}", "Ok" },
        { "{name: a, type: package, package: none, state: absent}", "Ok" },
    };
    struct agent_fixture f;
    machine(&f, BASE, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
    agent_fixture_init(&f);
    agent_run(&f, RESOURCE(", package: dpkg"));
    CHECK_STR(agent_said(&f, "a"), "Failed: there is no /var/lib/dpkg/status; only machines with "
                                   "apt are served");
    agent_fixture_done(&f);
}
