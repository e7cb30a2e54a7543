// Lookups and steps of a cursor allocate nothing: the program counts the calls of the allocator and
// of mmap that the library makes.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <silvics.h>
#include <sys/mman.h>

#include "expect.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static size_t allocations;

void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
int posix_memalign(void **place, size_t align, size_t size) {
  ++allocations;
  *place = __libc_memalign(align, size);
  return *place == NULL ? ENOMEM : 0;
}
void *aligned_alloc(size_t align, size_t size) {
  ++allocations;
  return __libc_memalign(align, size);
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  static void *(*real)(void *, size_t, int, int, int, off_t);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "mmap");
  ++allocations;
  return real(address, size, protection, flags, file, offset);
}

enum { COUNT = 20000, MANY = 100 };

static silvics_key key_of(int keys, uint64_t number, char *text) {
  if (keys == SILVICS_WORDS) return silvics_word_key(number);
  const int size = snprintf(text, 64, "a key that is not short: %016llx", (unsigned long long)number);
  return silvics_bytes_key(text, (size_t)size);
}

static size_t lookups(int keys, int values) {
  silvics_options options;
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.keys = keys;
  options.values = values;
  silvics_map *map;
  EXPECT(silvics_create(&options, &map) == SILVICS_OK);
  static uint64_t numbers[COUNT];
  static char texts[MANY][64];
  char text[64];
  for (uint64_t i = 0; i < COUNT; ++i) {
    numbers[i] = i * 0x9e3779b97f4a7c15u;
    const silvics_value value = values == SILVICS_WORDS ? silvics_word_value(i)
                                                        : silvics_buffer_value(&numbers[i], 8);
    EXPECT(silvics_insert(map, NULL, key_of(keys, numbers[i], text), value, NULL) == SILVICS_OK);
  }
  EXPECT(allocations > 0);  // or it counts nothing
  silvics_key some[MANY];
  silvics_value found[MANY];
  bool present[MANY];
  silvics_guard guard;
  silvics_cursor *cursor;
  EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
  // The first steps make the buffers of a cursor.
  for (int i = 0; i < 5000; ++i) {
    EXPECT(silvics_cursor_next(cursor, NULL, NULL, NULL) == SILVICS_OK);
  }

  const size_t before = allocations;
  EXPECT(silvics_pin(map, &guard) == SILVICS_OK);
  for (uint64_t i = 0; i < COUNT; ++i) {
    const silvics_key key = key_of(keys, numbers[i] + i % 2, text);
    EXPECT(silvics_get(map, &guard, key, &found[0]) == (i % 2 ? SILVICS_ABSENT : SILVICS_OK));
    EXPECT(silvics_get(map, NULL, key, NULL) == (i % 2 ? SILVICS_ABSENT : SILVICS_OK));
  }
  for (uint64_t i = 0; i < MANY; ++i) some[i] = key_of(keys, numbers[i], texts[i]);
  EXPECT(silvics_get_many(map, &guard, some, MANY, found, present) == SILVICS_OK);
  EXPECT(silvics_first(map, &guard, &some[0], &found[0]) == SILVICS_OK);
  for (int i = 0; i < 10000; ++i) {
    EXPECT(silvics_cursor_next(cursor, &guard, &some[0], &found[0]) == SILVICS_OK);
  }
  EXPECT(silvics_unpin(&guard) == SILVICS_OK);
  const size_t counted = allocations - before;
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK && silvics_destroy(map) == SILVICS_OK);
  return counted;
}

int main(void) {
  size_t sum = 0;
  for (int keys = SILVICS_WORDS; keys <= SILVICS_BYTES; ++keys) {
    for (int values = SILVICS_WORDS; values <= SILVICS_BYTES; ++values) {
      const size_t counted = lookups(keys, values);
      if (counted > 0) fprintf(stderr, "keys %d, values %d: %zu allocations\n", keys, values, counted);
      sum += counted;
    }
  }
  EXPECT(sum == 0);
  puts("allocations: none");
  return 0;
}
