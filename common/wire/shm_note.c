/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_note.c */
#include "common/wire/shm_note.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one descriptor, aligned as the system wants it. */
typedef union fd_room {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} fd_room;

bool wf_shm_note_send(int socket, const wf_shm_note *note, int fd)
{
    wf_shm_note copy = *note;
    struct iovec part = {&copy, sizeof copy};
    fd_room room = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    if (fd >= 0) {
        m.msg_control = room.bytes;
        m.msg_controllen = sizeof room.bytes;
        room.head.cmsg_level = SOL_SOCKET;
        room.head.cmsg_type = SCM_RIGHTS;
        room.head.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&room.head), &fd, sizeof fd);
    }
    do
        n = sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof copy;
}

int wf_shm_note_take(int socket, wf_shm_note *note, int *fd)
{
    struct iovec part = {note, sizeof *note};
    fd_room room = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = sizeof room.bytes};
    ssize_t n;

    *fd = -1;
    /* A reset is told once, before the notes that were sent: the other side died with notes unread.
     */
    do
        n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    /* Further descriptors find no room, and the system closes them. */
    if (m.msg_controllen >= CMSG_LEN(sizeof *fd) && room.head.cmsg_level == SOL_SOCKET &&
        room.head.cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(&room.head), sizeof *fd);
    if (n == (ssize_t)sizeof *note)
        return 1;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return -1;
}

bool wf_shm_note_is_end(int socket)
{
    wf_shm_note note;
    int fd, there;

    while ((there = wf_shm_note_take(socket, &note, &fd)) > 0)
        if (fd >= 0)
            close(fd);
    return there < 0;
}
