#include "agent/dpkg_status.h"

#include "tests/check.h"

static const char status[] = "Package: chrony\n"
                             "Status: install ok installed\n"
                             "Architecture: amd64\n"
                             "Conffiles:\n"
                             " /etc/chrony/chrony.conf 123\n"
                             "Version: 4.3-2\n"
                             "Description: keeps time\n"
                             " Version: none of this\n"
                             "\n"
                             "Package: libc6\n"
                             "Status: deinstall ok config-files\n"
                             "Architecture: i386\n"
                             "Version: 2.35\n"
                             "\n"
                             "Package: libc6\n"
                             "Status: hold ok installed\n"
                             "Architecture: amd64\n"
                             "Version: 2.36\n"
                             "\n"
                             "Package: nothing\n"
                             "\n"
                             "Package: last\n"
                             "Status: install ok half-configured";

TEST(dpkg_status_has_packages_by_name_and_architecture)
{
    struct dpkg_package p;
    CHECK(dpkg_find(STR(status), STR("chrony"), &p));
    CHECK_STR(p.version, "4.3-2");
    CHECK(dpkg_is_installed(&p));
    CHECK(dpkg_find(STR(status), STR("libc6"), &p));
    CHECK_STR(p.version, "2.36");
    CHECK_STR(p.want, "hold");
    CHECK(dpkg_find(STR(status), STR("libc6:i386"), &p));
    CHECK_STR(p.state, "config-files");
    CHECK(!dpkg_find(STR(status), STR("libc6:arm64"), &p));
    CHECK(!dpkg_find(STR(status), STR("nothing"), &p));
    CHECK(!dpkg_find(STR(status), STR("chron"), &p));
    CHECK(dpkg_find(STR(status), STR("last"), &p));
    CHECK_STR(p.state, "half-configured");
    CHECK(dpkg_is_interrupted(STR(status)));
    CHECK(!dpkg_is_interrupted(STR("Package: a\nStatus: install ok installed\n")));
}

TEST(dpkg_names_and_versions_are_checked)
{
    static const char *const good[] = { "chrony", "g++", "libc6:amd64", "linux-image-6.1" };
    static const char *const bad[] = { "",    "a",   "-chrony", "Chrony", "chrony-",
                                       "a b", "a/b", "a:",      "a*",     "chrony=1" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        check_case((int64_t)i);
        CHECK(dpkg_name_is_good(str_from(good[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        check_case((int64_t)i);
        CHECK(!dpkg_name_is_good(str_from(bad[i])));
    }
    check_case(-1);
    CHECK(dpkg_version_is_good(STR("1:4.3-2+deb12u1~rc1")));
    CHECK(!dpkg_version_is_good(STR("-1")));
    CHECK(!dpkg_version_is_good(STR("1 2")));
    CHECK(!dpkg_version_is_good(STR("")));
}

TEST(apt_tells_what_it_would_install)
{
    struct str out = STR("Reading package lists...\n"
                         "Inst libx [1] (2 Debian:12 [amd64])\n"
                         "Inst chrony:i386 [4.3-2] (4.4 Debian:12 [i386])\n"
                         "Conf other (4.4)\n");
    CHECK(apt_would_install(out, STR("chrony")));
    CHECK(apt_would_install(out, STR("libx:amd64")));
    CHECK(!apt_would_install(out, STR("other")));
    CHECK(!apt_would_install(out, STR("lib")));
}
