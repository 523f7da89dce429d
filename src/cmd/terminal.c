#include "cmd/terminal.h"

#include "base/str.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_MAX 500u /* lines are not read beyond it */

uint32_t terminal_columns(int fd)
{
    struct winsize size = { 0 };
    if (isatty(fd) != 1) {
        return 0;
    }
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < TERMINAL_COLUMNS) {
        return TERMINAL_COLUMNS;
    }
    return MIN((uint32_t)size.ws_col, COLUMNS_MAX);
}

bool terminal_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR");
    struct str term = str_from(getenv("TERM"));
    return isatty(fd) == 1 && (no_colour == NULL || no_colour[0] == '\0') && term.n > 0 &&
           !str_eq(term, STR("dumb"));
}
