/* The image that every pod on a real node has, and that the cases use for pods that only run: it
 * waits until it is told to end. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int number)
{
    (void)number;
    _exit(0);
}

static void reap(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void)
{
    (void)signal(SIGINT, leave);
    (void)signal(SIGTERM, leave);
    (void)signal(SIGCHLD, reap);
    for (;;) {
        (void)pause();
    }
}
