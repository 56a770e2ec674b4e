#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/weft_file_test_XXXXXX";
static char path[256], other[256]; // two names in the folder

static int make_folder(void** state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof(path), "%s/output", folder);
  snprintf(other, sizeof(other), "%s/other", folder);
  return 0;
}

static int visit_folder(bool remove_all) {
  DIR* directory = opendir(folder);
  assert_non_null(directory);
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory));) {
    if (entry->d_name[0] == '.') continue;
    ++count;
    if (remove_all) assert_int_equal(unlinkat(dirfd(directory), entry->d_name, 0), 0);
  }
  closedir(directory);
  return count;
}

static int count_files(void) {
  return visit_folder(false);
}

static int clear_folder(void** state) {
  (void)state;
  visit_folder(true);
  return 0;
}

static int remove_folder(void** state) {
  (void)state;
  return rmdir(folder);
}

static void write_plainly(const char* name, const char* text) {
  FILE* stream = fopen(name, "wb");
  assert_non_null(stream);
  fputs(text, stream);
  assert_int_equal(fclose(stream), 0);
}

static void assert_content(const char* name, const char* expected) {
  weft_mapping_t mapping;
  assert_null(weft_file_map(name, &mapping));
  assert_int_equal(mapping.size, strlen(expected));
  assert_memory_equal(mapping.data, expected, mapping.size);
  weft_file_unmap(&mapping);
  assert_null(mapping.data);
}

static void assert_fails(weft_status_t status, weft_status_code_e code, const char* name) {
  assert_int_equal(weft_status_code(status), code);
  assert_non_null(strstr(weft_status_message(status), name));
  weft_status_free(status);
}

static void test_map(void** state) {
  (void)state;
  write_plainly(path, "some bytes");
  assert_content(path, "some bytes");
  write_plainly(path, "");
  weft_mapping_t mapping;
  assert_null(weft_file_map(path, &mapping));
  assert_non_null(mapping.data);
  assert_int_equal(mapping.size, 0);
  weft_file_unmap(&mapping);
  weft_file_unmap(&mapping);
}

static void test_map_refuses(void** state) {
  (void)state;
  weft_mapping_t mapping;
  assert_fails(weft_file_map(path, &mapping), WEFT_STATUS_NOT_FOUND, path);
  assert_null(mapping.data);
  assert_fails(weft_file_map(folder, &mapping), WEFT_STATUS_IO, "Is a directory");
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_fails(weft_file_map(path, &mapping), WEFT_STATUS_IO, "Not a regular file"); // and doesn't wait for a writer
}

static void test_commit_creates(void** state) {
  (void)state;
  weft_file_writer_t writer;
  assert_null(weft_file_writer_open(weft_allocator_system(), path, &writer));
  fprintf(writer.stream, "%d", 123);
  assert_int_equal(access(path, F_OK), -1); // nothing under the name before the commit
  assert_null(weft_file_writer_commit(&writer));
  assert_content(path, "123");
  weft_file_writer_abandon(&writer);
  assert_content(path, "123");
  assert_int_equal(count_files(), 1);
}

static void test_commit_replaces(void** state) {
  (void)state;
  write_plainly(path, "a longer old content");
  weft_file_writer_t writer;
  assert_null(weft_file_writer_open(weft_allocator_system(), path, &writer));
  fputs("new", writer.stream);
  fflush(writer.stream);
  assert_content(path, "a longer old content");
  assert_null(weft_file_writer_commit(&writer));
  assert_content(path, "new");
  assert_int_equal(count_files(), 1);
}

static void test_abandon_leaves_nothing(void** state) {
  (void)state;
  for (int exists = 0; exists < 2; ++exists) {
    if (exists) write_plainly(path, "old");
    weft_file_writer_t writer;
    assert_null(weft_file_writer_open(weft_allocator_system(), path, &writer));
    fputs("new", writer.stream);
    assert_int_equal(count_files(), exists + 1);
    weft_file_writer_abandon(&writer);
    weft_file_writer_abandon(&writer);
    assert_int_equal(count_files(), exists);
    if (exists) assert_content(path, "old");
  }
}

static void test_two_writers_of_one_path(void** state) {
  (void)state;
  weft_file_writer_t first, second;
  assert_null(weft_file_writer_open(weft_allocator_system(), path, &first));
  assert_null(weft_file_writer_open(weft_allocator_system(), path, &second));
  fputs("first", first.stream);
  fputs("second", second.stream);
  assert_null(weft_file_writer_commit(&first));
  assert_content(path, "first");
  assert_null(weft_file_writer_commit(&second));
  assert_content(path, "second");
  assert_int_equal(count_files(), 1);
}

static void test_open_refuses(void** state) {
  (void)state;
  weft_file_writer_t writer;
  assert_fails(weft_file_writer_open(weft_allocator_system(), folder, &writer), WEFT_STATUS_IO, folder);
  weft_file_writer_abandon(&writer);
  char missing[512];
  snprintf(missing, sizeof(missing), "%s/nowhere/file", folder);
  assert_fails(weft_file_writer_open(weft_allocator_system(), missing, &writer), WEFT_STATUS_NOT_FOUND, missing);
  assert_int_equal(count_files(), 0);
}

static mode_t mode_of(const char* name) {
  struct stat information;
  assert_int_equal(stat(name, &information), 0);
  return information.st_mode & 07777;
}

static void test_modes(void** state) {
  (void)state;
  mode_t before = umask(027);
  assert_null(weft_file_write(weft_allocator_system(), path, "x", 1));
  umask(before);
  assert_int_equal(mode_of(path), 0640);
  assert_int_equal(chmod(path, 0604), 0);
  assert_null(weft_file_write(weft_allocator_system(), path, "y", 1)); // overwritten: keeps the mode it was given
  assert_int_equal(mode_of(path), 0604);
}

static void test_write_through_a_link(void** state) {
  (void)state;
  write_plainly(other, "old");
  assert_int_equal(symlink("other", path), 0);
  assert_null(weft_file_write(weft_allocator_system(), path, "new", 3));
  assert_content(other, "new");
  struct stat information;
  assert_int_equal(lstat(path, &information), 0);
  assert_true(S_ISLNK(information.st_mode));
  assert_int_equal(count_files(), 2);
}

static void test_write(void** state) {
  (void)state;
  assert_null(weft_file_write(weft_allocator_system(), path, "a\0b", 3));
  weft_mapping_t mapping;
  assert_null(weft_file_map(path, &mapping));
  assert_int_equal(mapping.size, 3);
  assert_memory_equal(mapping.data, "a\0b", 3);
  weft_file_unmap(&mapping);
  assert_null(weft_file_write(weft_allocator_system(), path, NULL, 0));
  assert_content(path, "");
}

// Limits file sizes, so that a write fails in the middle as on a full disk.
static void limit_file_size(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_failed_write_keeps_the_old_file(void** state) {
  (void)state;
  enum { LARGE = 200000 };
  static char data[LARGE];
  write_plainly(path, "old");
  signal(SIGXFSZ, SIG_IGN);
  limit_file_size(1000);
  weft_status_t at_once = weft_file_write(weft_allocator_system(), path, data, LARGE);
  weft_status_t at_commit = weft_file_write(weft_allocator_system(), path, data, 1001); // still buffered until then
  weft_file_writer_t writer;
  weft_status_t opened = weft_file_writer_open(weft_allocator_system(), path, &writer);
  fwrite(data, 1, LARGE, writer.stream); // a caller who doesn't look
  limit_file_size(RLIM_INFINITY);
  fputc('x', writer.stream); // there is room again, but bytes are missing
  weft_status_t unnoticed = weft_file_writer_commit(&writer);
  signal(SIGXFSZ, SIG_DFL);
  assert_fails(at_once, WEFT_STATUS_IO, path);
  assert_fails(at_commit, WEFT_STATUS_IO, path);
  assert_null(opened);
  assert_fails(unnoticed, WEFT_STATUS_IO, path);
  assert_content(path, "old");
  assert_int_equal(count_files(), 1);
}

static void test_devices_are_written_directly(void** state) {
  (void)state;
  assert_null(weft_file_write(weft_allocator_system(), "/dev/null", "x", 1));
  struct stat information;
  assert_int_equal(stat("/dev/null", &information), 0);
  assert_true(S_ISCHR(information.st_mode));
  assert_fails(weft_file_write(weft_allocator_system(), "/dev/full", "x", 1), WEFT_STATUS_IO, "/dev/full");
}

static void test_pipes_are_written_directly(void** state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  char name[64], received[16] = {0};
  snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
  assert_null(weft_file_write(weft_allocator_system(), name, "through", 7));
  assert_int_equal(read(ends[0], received, sizeof(received)), 7);
  assert_string_equal(received, "through");
  close(ends[0]);
  close(ends[1]);
}

static void test_standard_output_keeps_its_place(void** state) {
  (void)state;
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  assert_true(file >= 0);
  fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  dup2(file, STDOUT_FILENO);
  ssize_t before = write(STDOUT_FILENO, "before ", 7);
  weft_status_t status = weft_file_write(weft_allocator_system(), "/dev/stdout", "text", 4);
  ssize_t after = write(STDOUT_FILENO, " after", 6);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(file);
  assert_null(status);
  assert_int_equal(before + after, 13);
  assert_content(path, "before text after");
  assert_int_equal(count_files(), 1);
}

static void test_every_allocation_may_fail(void** state) {
  (void)state;
  write_plainly(path, "old");
  uint64_t failures = 0;
  for (bool done = false; !done; ++failures) {
    weft_failing_allocator_t memory = {.countdown = failures};
    weft_status_t status = weft_file_write(weft_allocator_failing(&memory), path, "new", 3);
    done = weft_is_ok(status);
    if (!done) {
      assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
      assert_content(path, "old");
    }
    weft_status_free(status);
    assert_int_equal(memory.live, 0);
    assert_int_equal(count_files(), 1);
  }
  assert_true(failures > 2);
  assert_content(path, "new");
}

#define FILE_TEST(function) cmocka_unit_test_teardown(function, clear_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_map),
      FILE_TEST(test_map_refuses),
      FILE_TEST(test_commit_creates),
      FILE_TEST(test_commit_replaces),
      FILE_TEST(test_abandon_leaves_nothing),
      FILE_TEST(test_two_writers_of_one_path),
      FILE_TEST(test_open_refuses),
      FILE_TEST(test_modes),
      FILE_TEST(test_write_through_a_link),
      FILE_TEST(test_write),
      FILE_TEST(test_failed_write_keeps_the_old_file),
      FILE_TEST(test_devices_are_written_directly),
      FILE_TEST(test_pipes_are_written_directly),
      FILE_TEST(test_standard_output_keeps_its_place),
      FILE_TEST(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
