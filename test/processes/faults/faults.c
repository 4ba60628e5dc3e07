/*
 * Preloaded into a process under test: its writes into one folder fail, or it is killed at one of them.
 *   FAULT_DIR      the folder; links are resolved
 *   FAULT_CONTROL  a file with `<write|sync> <errno>`: while it is there, such calls fail
 *   FAULT_KILL_AT  the process is killed before its n-th call that changes something in the folder
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static int in_folder(const char *path) {
  const char *folder = getenv("FAULT_DIR");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int file_in_folder(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return in_folder(path);
}

/* Before a call that changes something in the folder. */
static void count(void) {
  const char *at = getenv("FAULT_KILL_AT");
  if (at && atomic_fetch_add(&calls, 1) + 1 == atol(at)) {
    kill(getpid(), SIGKILL);
    pause();
  }
}

/* The error that a call is to fail with; 0 if it may go on. */
static int fault(const char *kind) {
  const char *control = getenv("FAULT_CONTROL");
  if (!control) return 0;
  int fd = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[64] = {0}, which[16] = {0};
  int number = 0;
  ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (length <= 0 || sscanf(text, "%15s %d", which, &number) != 2) return 0;
  return strcmp(which, kind) == 0 ? number : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define ON_FILE(type, name, kind, parameters, arguments)                                                               \
  type name parameters {                                                                                               \
    if (file_in_folder(fd)) {                                                                                          \
      count();                                                                                                         \
      int error = fault(kind);                                                                                         \
      if (error) {                                                                                                     \
        errno = error;                                                                                                 \
        return -1;                                                                                                     \
      }                                                                                                                \
    }                                                                                                                  \
    return REAL(name) arguments;                                                                                       \
  }

ON_FILE(ssize_t, write, "write", (int fd, const void *bytes, size_t size), (fd, bytes, size))
ON_FILE(ssize_t, pwrite, "write", (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
ON_FILE(ssize_t, pwrite64, "write", (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at))
ON_FILE(int, ftruncate, "write", (int fd, off_t size), (fd, size))
ON_FILE(int, ftruncate64, "write", (int fd, off64_t size), (fd, size))
ON_FILE(int, fsync, "sync", (int fd), (fd))
ON_FILE(int, fdatasync, "sync", (int fd), (fd))
ON_FILE(int, fchmod, "change", (int fd, mode_t mode), (fd, mode))

#define ON_PATH(name, parameters, arguments)                                                                           \
  int name parameters {                                                                                                \
    if (in_folder(path)) count();                                                                                      \
    return REAL(name) arguments;                                                                                       \
  }

ON_PATH(rename, (const char *path, const char *to), (path, to))
ON_PATH(unlink, (const char *path), (path))
ON_PATH(link, (const char *path, const char *to), (path, to))
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(chmod, (const char *path, mode_t mode), (path, mode))

#define ON_OPEN(name)                                                                                                  \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                                          \
    va_end(rest);                                                                                                      \
    if (flags & O_CREAT && in_folder(path)) count();                                                                   \
    return REAL(name)(path, flags, mode);                                                                              \
  }

ON_OPEN(open)
ON_OPEN(open64)
