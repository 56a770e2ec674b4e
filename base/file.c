#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

static weft_status_t file_error(const char* verb, const char* path, int error) {
  char buffer[128];
  const char* reason = strerror_r(error, buffer, sizeof(buffer));
  if (error == ENOENT) return weft_error(NOT_FOUND, "cannot %s '%s': %s", verb, path, reason);
  if (error == ENOMEM) return weft_error(OUT_OF_MEMORY, "cannot %s '%s': %s", verb, path, reason);
  return weft_error(IO, "cannot %s '%s': %s", verb, path, reason);
}

static weft_status_t map_descriptor(int descriptor, const char* path, weft_mapping_t* out_mapping) {
  static const uint8_t nothing[1] = {0};
  struct stat information;
  if (fstat(descriptor, &information) != 0) return file_error("read", path, errno);
  if (S_ISDIR(information.st_mode)) return file_error("read", path, EISDIR);
  if (!S_ISREG(information.st_mode)) return weft_error(IO, "cannot read '%s': Not a regular file", path);
  if ((uintmax_t)information.st_size > SIZE_MAX) return file_error("read", path, EFBIG);
  if (information.st_size == 0) { // mmap refuses a length of zero
    *out_mapping = (weft_mapping_t){.data = nothing};
    return weft_ok();
  }
  size_t size = (size_t)information.st_size;
  void* base = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (base == MAP_FAILED) return file_error("read", path, errno);
  *out_mapping = (weft_mapping_t){.data = base, .size = size, .base = base};
  return weft_ok();
}

weft_status_t weft_file_map(const char* path, weft_mapping_t* out_mapping) {
  *out_mapping = (weft_mapping_t){0};
  // Non-blocking, or a named pipe without a writer would hang here before it can be refused.
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error("read", path, errno);
  weft_status_t status = map_descriptor(descriptor, path, out_mapping);
  close(descriptor); // the mapping keeps the file
  return status;
}

void weft_file_unmap(weft_mapping_t* mapping) {
  if (mapping->base) munmap(mapping->base, mapping->size);
  *mapping = (weft_mapping_t){0};
}

static weft_status_t copy_text(weft_allocator_t allocator, const char* text, char** out_copy) {
  size_t size = strlen(text) + 1;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, size, 1, (void**)out_copy));
  memcpy(*out_copy, text, size);
  return weft_ok();
}

// /dev/stdout may be a regular file that others append to: it is the process's own descriptor that is meant, with its
// position, and not the file behind it.
static int standard_descriptor(const char* path) {
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  return -1;
}

// Creates the temporary file beside writer->path and gives its descriptor, or -1 and errno.
static weft_status_t create_temporary(weft_file_writer_t* writer, int* out_descriptor) {
  enum { SUFFIX_BYTES = 64, ATTEMPTS = 100 };
  size_t size;
  if (!weft_checked_add(strlen(writer->path), (size_t)SUFFIX_BYTES, &size))
    return weft_error(INTERNAL, "path too long");
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(writer->allocator, size, 1, (void**)&writer->temporary));
  snprintf(writer->temporary, size, "%s.tmp.%ld", writer->path, (long)getpid());
  *out_descriptor = -1;
  // The name can be taken: by another writer of this process, or left by a killed one with the same id.
  for (int i = 1; i <= ATTEMPTS; ++i) {
    *out_descriptor = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*out_descriptor >= 0 || errno != EEXIST) break;
    snprintf(writer->temporary, size, "%s.tmp.%ld.%d", writer->path, (long)getpid(), i);
  }
  return weft_ok();
}

static void release(weft_file_writer_t* writer) {
  weft_allocator_free(writer->allocator, writer->path);
  weft_allocator_free(writer->allocator, writer->temporary);
  *writer = (weft_file_writer_t){0};
}

static weft_status_t open_stream(weft_file_writer_t* writer, const char* path) {
  char resolved[PATH_MAX];
  struct stat information;
  int standard = standard_descriptor(path), descriptor = -1;
  bool exists = stat(path, &information) == 0;
  if (exists && S_ISDIR(information.st_mode)) return file_error("write", path, EISDIR);
  if (standard >= 0) {
    WEFT_RETURN_IF_ERROR(copy_text(writer->allocator, path, &writer->path));
    descriptor = fcntl(standard, F_DUPFD_CLOEXEC, 0);
  } else if (exists && !S_ISREG(information.st_mode)) {
    WEFT_RETURN_IF_ERROR(copy_text(writer->allocator, path, &writer->path));
    descriptor = open(path, O_WRONLY | O_CLOEXEC);
  } else {
    // Through a symbolic link the file itself is replaced, not the link.
    const char* target = exists && realpath(path, resolved) ? resolved : path;
    WEFT_RETURN_IF_ERROR(copy_text(writer->allocator, target, &writer->path));
    WEFT_RETURN_IF_ERROR(create_temporary(writer, &descriptor));
    if (descriptor < 0) {
      weft_status_t status = file_error("write", path, errno);
      weft_allocator_free(writer->allocator, writer->temporary);
      writer->temporary = NULL; // not ours to remove
      return status;
    }
    // A file that is overwritten keeps its mode. Best effort: some file systems have none.
    if (exists) (void)fchmod(descriptor, information.st_mode & 0777);
  }
  if (descriptor < 0) return file_error("write", path, errno);
  writer->stream = fdopen(descriptor, "wb");
  if (!writer->stream) {
    weft_status_t status = file_error("write", path, errno);
    close(descriptor);
    return status;
  }
  return weft_ok();
}

weft_status_t weft_file_writer_open(weft_allocator_t allocator, const char* path, weft_file_writer_t* out_writer) {
  *out_writer = (weft_file_writer_t){.allocator = allocator};
  weft_status_t status = open_stream(out_writer, path);
  if (status) weft_file_writer_abandon(out_writer);
  return status;
}

weft_status_t weft_file_writer_commit(weft_file_writer_t* writer) {
  weft_status_t status = weft_ok();
  errno = 0;
  bool written = !ferror(writer->stream);
  written = fflush(writer->stream) == 0 && written;
  if (written && writer->temporary) written = fsync(fileno(writer->stream)) == 0;
  int error = written ? 0 : errno;
  written = fclose(writer->stream) == 0 && written;
  writer->stream = NULL;
  if (written && writer->temporary) written = rename(writer->temporary, writer->path) == 0;
  // An early failed write leaves only the stream's error mark, without its reason.
  if (!written) {
    if (!error) error = errno ? errno : EIO;
    status = file_error("write", writer->path, error);
    weft_file_writer_abandon(writer);
  }
  release(writer);
  return status;
}

void weft_file_writer_abandon(weft_file_writer_t* writer) {
  if (writer->stream) fclose(writer->stream);
  if (writer->temporary) unlink(writer->temporary);
  release(writer);
}

weft_status_t weft_file_write(weft_allocator_t allocator, const char* path, const void* data, size_t size) {
  weft_file_writer_t writer;
  WEFT_RETURN_IF_ERROR(weft_file_writer_open(allocator, path, &writer));
  if (size && fwrite(data, 1, size, writer.stream) != size) {
    weft_status_t status = file_error("write", path, errno);
    weft_file_writer_abandon(&writer);
    return status;
  }
  return weft_file_writer_commit(&writer);
}
