// Threads that read, replace and remove buffers of one map. The sanitizers watch: a buffer that is
// destroyed too early is a use after free, and a race with the destructor that overwrites it.
// With the argument `mistake`, readers keep a buffer after they have unpinned.

#include <pthread.h>
#include <silvics.h>
#include <stdatomic.h>
#include <string.h>

#include "expect.h"

enum { KEYS = 64, THREADS = 4, ROUNDS = 20000 };

struct entry {
  uint64_t key, twice;
};

struct shared {
  silvics_map *map;
  atomic_long live;
  atomic_bool go;
  bool mistake;
};

static void release(void *context, void *data, uint64_t size) {
  struct shared *shared = context;
  EXPECT(size == sizeof(struct entry));
  memset(data, 0xff, sizeof(struct entry));
  free(data);
  atomic_fetch_sub_explicit(&shared->live, 1, memory_order_relaxed);
}

static silvics_value made(struct shared *shared, uint64_t key) {
  struct entry *entry = malloc(sizeof *entry);
  EXPECT(entry != NULL);
  *entry = (struct entry){key, 2 * key};
  atomic_fetch_add_explicit(&shared->live, 1, memory_order_relaxed);
  return silvics_buffer_value(entry, sizeof *entry);
}

static void rejected(struct shared *shared, silvics_value value) {
  release(shared, value.data, value.word);
}

static void whole(const struct entry *entry, uint64_t key) {
  EXPECT(entry->key == key && entry->twice == 2 * key);
}

static void scan(struct shared *shared, silvics_guard *guard) {
  silvics_cursor *cursor;
  silvics_key key;
  silvics_value value;
  uint64_t last = 0;
  EXPECT(silvics_cursor_open(shared->map, NULL, NULL, &cursor) == SILVICS_OK);
  while (silvics_cursor_next(cursor, guard, &key, &value) == SILVICS_OK) {
    EXPECT(key.word >= last);
    last = key.word + 1;
    if (value.data != NULL) whole(value.data, key.word);
  }
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK);
}

static void *run(void *argument) {
  struct shared *shared = argument;
  uint64_t state = (uintptr_t)&state;
  while (!atomic_load(&shared->go)) {
  }
  for (int round = 0; round < ROUNDS; ++round) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t number = (state >> 40) % KEYS;
    const silvics_key key = silvics_word_key(number);
    silvics_guard guard;
    silvics_value found, new;
    switch ((state >> 33) % 8) {
      case 0:
        EXPECT(silvics_insert(shared->map, NULL, key, made(shared, number), NULL) >= 0);
        break;
      case 1:
        EXPECT(silvics_remove(shared->map, NULL, key, NULL) >= 0);
        break;
      case 2:
        EXPECT(silvics_pin(shared->map, &guard) == SILVICS_OK);
        new = made(shared, number);
        if (silvics_get(shared->map, &guard, key, &found) == SILVICS_OK) {
          const silvics_status status =
              silvics_compare_exchange(shared->map, &guard, key, &found, &new, NULL);
          EXPECT(status >= 0);
          if (status != SILVICS_OK) rejected(shared, new);
          whole(found.data, number);
        } else {
          rejected(shared, new);
        }
        EXPECT(silvics_unpin(&guard) == SILVICS_OK);
        break;
      case 3:
        if (round % 16 == 0) {
          EXPECT(silvics_pin(shared->map, &guard) == SILVICS_OK);
          scan(shared, &guard);
          EXPECT(silvics_unpin(&guard) == SILVICS_OK);
        }
        break;
      default:
        EXPECT(silvics_pin(shared->map, &guard) == SILVICS_OK);
        if (silvics_get(shared->map, &guard, key, &found) == SILVICS_OK) {
          if (shared->mistake) {
            EXPECT(silvics_unpin(&guard) == SILVICS_OK && silvics_flush(shared->map) == SILVICS_OK);
            whole(found.data, number);
            break;
          }
          whole(found.data, number);
        }
        EXPECT(silvics_unpin(&guard) == SILVICS_OK);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  struct shared shared = {.mistake = argc > 1 && strcmp(argv[1], "mistake") == 0};
  silvics_options options;
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.values = SILVICS_BYTES;
  options.destroy = release;
  options.context = &shared;
  EXPECT(silvics_create(&options, &shared.map) == SILVICS_OK);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    EXPECT(pthread_create(&threads[i], NULL, run, &shared) == 0);
  }
  atomic_store(&shared.go, true);
  for (int i = 0; i < THREADS; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  const size_t entries = silvics_len(shared.map);
  EXPECT(silvics_flush(shared.map) == SILVICS_OK);
  EXPECT((size_t)atomic_load(&shared.live) >= entries);
  EXPECT(silvics_check(shared.map, NULL) == SILVICS_OK);
  EXPECT(silvics_destroy(shared.map) == SILVICS_OK && atomic_load(&shared.live) == 0);
  puts("threads: ok");
  return 0;
}
