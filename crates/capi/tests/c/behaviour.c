// The behaviour of the C interface, call by call. The argument `debug` says that the library finds
// wrong handles.

#include <silvics.h>
#include <stdatomic.h>
#include <string.h>

#include "expect.h"

static silvics_map *made(int keys, int values, silvics_destructor destroy, void *context) {
  silvics_options options;
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.keys = keys;
  options.values = values;
  options.destroy = destroy;
  options.context = context;
  silvics_map *map = NULL;
  EXPECT(silvics_create(&options, &map) == SILVICS_OK && map != NULL);
  return map;
}

static silvics_key key(const char *text) { return silvics_bytes_key(text, strlen(text)); }

static bool is(silvics_key key, const char *text) {
  return key.word == strlen(text) && memcmp(key.data, text, key.word) == 0;
}

// Verbs on one key, with numbers.
static void words(void) {
  silvics_map *map = made(SILVICS_WORDS, SILVICS_WORDS, NULL, NULL);
  silvics_value value = silvics_word_value(99);
  const silvics_key seven = silvics_word_key(7), top = silvics_word_key(UINT64_MAX);
  EXPECT(silvics_get(map, NULL, seven, &value) == SILVICS_ABSENT && value.word == 99);
  EXPECT(silvics_try_insert(map, NULL, seven, silvics_word_value(70), NULL) == SILVICS_OK);
  EXPECT(silvics_try_insert(map, NULL, seven, silvics_word_value(71), &value) == SILVICS_PRESENT);
  EXPECT(value.word == 70 && value.data == NULL);
  EXPECT(silvics_insert(map, NULL, seven, silvics_word_value(72), &value) == SILVICS_REPLACED);
  EXPECT(value.word == 70);
  EXPECT(silvics_insert(map, NULL, top, silvics_word_value(UINT64_MAX), &value) == SILVICS_OK);
  EXPECT(silvics_get(map, NULL, top, &value) == SILVICS_OK && value.word == UINT64_MAX);
  EXPECT(silvics_get(map, NULL, top, NULL) == SILVICS_OK && silvics_len(map) == 2);

  const silvics_value old = silvics_word_value(72), new = silvics_word_value(73);
  EXPECT(silvics_compare_exchange(map, NULL, seven, &new, &old, &value) == SILVICS_MISMATCH);
  EXPECT(value.word == 72);
  EXPECT(silvics_compare_exchange(map, NULL, seven, &old, &new, &value) == SILVICS_OK);
  EXPECT(silvics_compare_exchange(map, NULL, seven, NULL, &old, &value) == SILVICS_MISMATCH);
  EXPECT(silvics_compare_exchange(map, NULL, seven, &new, NULL, NULL) == SILVICS_OK);
  EXPECT(silvics_compare_exchange(map, NULL, seven, &new, NULL, NULL) == SILVICS_ABSENT);
  EXPECT(silvics_compare_exchange(map, NULL, seven, NULL, NULL, NULL) == SILVICS_OK);
  EXPECT(silvics_compare_exchange(map, NULL, seven, NULL, &new, NULL) == SILVICS_OK);
  EXPECT(silvics_remove(map, NULL, seven, &value) == SILVICS_OK && value.word == 73);
  EXPECT(silvics_remove(map, NULL, seven, &value) == SILVICS_ABSENT);
  EXPECT(silvics_destroy(map) == SILVICS_OK && silvics_destroy(NULL) == SILVICS_OK);
}

// Many keys at once, more than one group of them.
static void batches(void) {
  enum { COUNT = 200 };
  silvics_map *map = made(SILVICS_WORDS, SILVICS_WORDS, NULL, NULL);
  uint64_t keys[COUNT], numbers[COUNT];
  silvics_key some[COUNT];
  silvics_value values[COUNT];
  bool found[COUNT];
  size_t done = 0;
  for (uint64_t i = 0; i < COUNT; ++i) {
    keys[i] = i * 3;
    numbers[i] = i;
    some[i] = silvics_word_key(i * 3 / 2);
    values[i] = silvics_word_value(1000 + i);
  }
  EXPECT(silvics_insert_words(map, NULL, keys, numbers, COUNT, &done) == SILVICS_OK);
  EXPECT(done == COUNT && silvics_len(map) == COUNT);
  memset(numbers, 0, sizeof numbers);
  EXPECT(silvics_get_words(map, NULL, keys, COUNT, numbers, found) == SILVICS_OK);
  for (uint64_t i = 0; i < COUNT; ++i) EXPECT(found[i] && numbers[i] == i);
  EXPECT(silvics_get_many(map, NULL, some, COUNT, values, found) == SILVICS_OK);
  for (uint64_t i = 0; i < COUNT; ++i) {
    const uint64_t at = some[i].word;
    EXPECT(found[i] == (at % 3 == 0));
    EXPECT(values[i].word == (found[i] ? at / 3 : 1000 + i));
  }
  EXPECT(silvics_insert_many(map, NULL, some, values, COUNT, &done) == SILVICS_OK && done == COUNT);
  EXPECT(silvics_get_many(map, NULL, NULL, 0, NULL, NULL) == SILVICS_OK);
  EXPECT(silvics_get_many(map, NULL, NULL, 1, values, found) == SILVICS_ERROR_NULL);
  // A wrong key is found before anything is inserted.
  const size_t before = silvics_len(map);
  some[0] = silvics_word_key(1u << 30);
  some[COUNT - 1] = key("text");
  EXPECT(silvics_insert_many(map, NULL, some, values, COUNT, &done) == SILVICS_ERROR_KEY);
  EXPECT(done == 0 && silvics_len(map) == before);
  EXPECT(silvics_destroy(map) == SILVICS_OK);
}

// Cursors over byte keys, both ways, with bounds and prefixes.
static void cursors(void) {
  silvics_map *map = made(SILVICS_BYTES, SILVICS_WORDS, NULL, NULL);
  const char *names[] = {"", "a", "ab", "ab/1", "ab/2", "ac", "b"};
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT(silvics_insert(map, NULL, key(names[i]), silvics_word_value(i), NULL) == SILVICS_OK);
  }
  silvics_cursor *cursor;
  silvics_key at;
  silvics_value value;
  EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
  EXPECT(silvics_cursor_entry(cursor, NULL, &at, &value) == SILVICS_ABSENT);
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT(silvics_cursor_next(cursor, NULL, &at, &value) == SILVICS_OK);
    EXPECT(is(at, names[i]) && value.word == i);
  }
  EXPECT(silvics_cursor_next(cursor, NULL, &at, &value) == SILVICS_ABSENT);
  for (uint64_t i = 7; i-- > 0;) {
    EXPECT(silvics_cursor_prev(cursor, NULL, &at, NULL) == SILVICS_OK && is(at, names[i]));
  }
  EXPECT(silvics_cursor_prev(cursor, NULL, NULL, NULL) == SILVICS_ABSENT);
  EXPECT(silvics_cursor_seek(cursor, NULL, key("aa"), &at, &value) == SILVICS_OK && is(at, "ab"));
  EXPECT(silvics_cursor_seek_for_prev(cursor, NULL, key("aa"), &at, NULL) == SILVICS_OK);
  EXPECT(is(at, "a"));
  EXPECT(silvics_cursor_entry(cursor, NULL, &at, &value) == SILVICS_OK && value.word == 1);
  EXPECT(silvics_cursor_seek(cursor, NULL, key("c"), &at, NULL) == SILVICS_ABSENT);
  EXPECT(silvics_cursor_last(cursor, NULL, &at, NULL) == SILVICS_OK && is(at, "b"));
  EXPECT(silvics_cursor_first(cursor, NULL, &at, NULL) == SILVICS_OK && is(at, ""));
  EXPECT(silvics_cursor_seek(cursor, NULL, silvics_word_key(1), &at, NULL) == SILVICS_ERROR_KEY);
  EXPECT(silvics_check(map, NULL) == SILVICS_ERROR_BUSY);
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK);

  EXPECT(silvics_cursor_open_prefix(map, key("ab/"), &cursor) == SILVICS_OK);
  EXPECT(silvics_cursor_last(cursor, NULL, &at, NULL) == SILVICS_OK && is(at, "ab/2"));
  EXPECT(silvics_cursor_prev(cursor, NULL, &at, NULL) == SILVICS_OK && is(at, "ab/1"));
  EXPECT(silvics_cursor_prev(cursor, NULL, &at, NULL) == SILVICS_ABSENT);
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK && silvics_cursor_close(NULL) == SILVICS_OK);

  const silvics_key from = key("a"), to = key("ab/2");
  EXPECT(silvics_cursor_open(map, &from, &to, &cursor) == SILVICS_OK);
  size_t count = 0;
  while (silvics_cursor_next(cursor, NULL, NULL, NULL) == SILVICS_OK) ++count;
  EXPECT(count == 3);
  // A cursor of a destroyed map is an error, and can be closed.
  EXPECT(silvics_destroy(map) == SILVICS_OK);
  EXPECT(silvics_cursor_first(cursor, NULL, &at, NULL) == SILVICS_ERROR_CLOSED);
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK);
}

// Both ends, under a guard where a byte key is returned.
static void ends(void) {
  silvics_map *map = made(SILVICS_BYTES, SILVICS_WORDS, NULL, NULL);
  silvics_guard guard;
  silvics_key at;
  silvics_value value;
  EXPECT(silvics_pin(map, &guard) == SILVICS_OK);
  EXPECT(silvics_first(map, &guard, &at, &value) == SILVICS_ABSENT);
  for (uint64_t i = 0; i < 5; ++i) {
    const char name = (char)('a' + i);
    const silvics_key one = silvics_bytes_key(&name, 1);
    EXPECT(silvics_insert(map, &guard, one, silvics_word_value(i), NULL) == SILVICS_OK);
  }
  EXPECT(silvics_first(map, NULL, &at, &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_first(map, NULL, NULL, &value) == SILVICS_OK && value.word == 0);
  EXPECT(silvics_first(map, &guard, &at, NULL) == SILVICS_OK && is(at, "a"));
  EXPECT(silvics_last(map, &guard, &at, &value) == SILVICS_OK && is(at, "e") && value.word == 4);
  silvics_key popped;
  EXPECT(silvics_pop_first(map, &guard, &popped, &value) == SILVICS_OK && value.word == 0);
  EXPECT(silvics_pop_last(map, &guard, &at, &value) == SILVICS_OK && value.word == 4);
  EXPECT(is(popped, "a") && is(at, "e"));  // the guard keeps removed keys
  EXPECT(silvics_len(map) == 3);
  EXPECT(silvics_unpin(&guard) == SILVICS_OK && silvics_unpin(&guard) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_get(map, &guard, key("b"), &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_repin(&guard) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_destroy(map) == SILVICS_OK);
}

// The buffers of a test: how many of them live, and a map that the destructor calls.
struct store {
  atomic_int live;
  silvics_map *map;
  int calls;
  bool debug;
};

static silvics_value buffer(struct store *store, int number) {
  int *place = malloc(sizeof *place);
  EXPECT(place != NULL);
  *place = number;
  atomic_fetch_add(&store->live, 1);
  return silvics_buffer_value(place, sizeof *place);
}

static void release(void *context, void *data, uint64_t size) {
  struct store *store = context;
  EXPECT(size == sizeof(int) && *(int *)data >= 0);
  *(int *)data = -1;
  free(data);
  atomic_fetch_sub(&store->live, 1);
  if (store->map != NULL) {
    silvics_guard guard;
    const silvics_status status = silvics_pin(store->map, &guard);
    if (status == SILVICS_OK) {
      silvics_value value;
      store->calls += silvics_get(store->map, &guard, silvics_word_key(1), &value) >= 0;
      EXPECT(silvics_remove(store->map, &guard, silvics_word_key(77), NULL) >= 0);
      EXPECT(silvics_unpin(&guard) == SILVICS_OK);
      if (store->debug) EXPECT(silvics_check(store->map, NULL) == SILVICS_ERROR_BUSY);
      if (store->debug) EXPECT(silvics_destroy(store->map) == SILVICS_ERROR_BUSY);
    } else {
      EXPECT(status == SILVICS_ERROR_CLOSED || status == SILVICS_ERROR_HANDLE);
      const silvics_status again = silvics_destroy(store->map);
      EXPECT(again == SILVICS_ERROR_CLOSED || again == SILVICS_ERROR_BUSY ||
             again == SILVICS_ERROR_HANDLE);
    }
  }
}

// Buffers: who owns them, and when they are destroyed.
static void buffers(void) {
  struct store store = {0};
  silvics_map *map = made(SILVICS_WORDS, SILVICS_BYTES, release, &store);
  const silvics_key one = silvics_word_key(1), two = silvics_word_key(2);
  silvics_guard guard;
  silvics_value first = buffer(&store, 1), second = buffer(&store, 2), value;
  EXPECT(silvics_insert(map, NULL, one, first, NULL) == SILVICS_OK);
  EXPECT(silvics_try_insert(map, NULL, one, second, NULL) == SILVICS_PRESENT);  // still ours
  EXPECT(silvics_get(map, NULL, one, &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_get(map, NULL, one, NULL) == SILVICS_OK);
  EXPECT(silvics_pin(map, &guard) == SILVICS_OK);
  EXPECT(silvics_insert(map, &guard, one, second, &value) == SILVICS_REPLACED);
  EXPECT(value.data == first.data && *(int *)value.data == 1 && atomic_load(&store.live) == 2);

  // A compare-and-swap compares the buffers themselves.
  silvics_value third = buffer(&store, 2);
  EXPECT(silvics_compare_exchange(map, &guard, one, &third, &third, &value) == SILVICS_MISMATCH);
  EXPECT(value.data == second.data);
  EXPECT(silvics_compare_exchange(map, &guard, one, &second, &third, NULL) == SILVICS_OK);
  EXPECT(silvics_insert(map, &guard, two, buffer(&store, 3), NULL) == SILVICS_OK);
  bool found[2];
  silvics_value both[2];
  const silvics_key keys[2] = {one, silvics_word_key(5)};
  EXPECT(silvics_get_many(map, &guard, keys, 2, both, found) == SILVICS_OK);
  EXPECT(found[0] && !found[1] && both[0].data == third.data);
  EXPECT(silvics_get_many(map, NULL, keys, 2, both, found) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_last(map, &guard, NULL, &value) == SILVICS_OK && *(int *)value.data == 3);

  silvics_cursor *cursor;
  silvics_key at;
  silvics_guard wrong = {{0}};
  EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
  EXPECT(silvics_cursor_next(cursor, NULL, &at, &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_cursor_next(cursor, &wrong, &at, &value) == SILVICS_ERROR_GUARD);  // no move
  EXPECT(silvics_cursor_next(cursor, &guard, &at, &value) == SILVICS_OK);
  EXPECT(at.word == 1 && value.data == third.data);
  EXPECT(silvics_remove(map, &guard, one, &value) == SILVICS_OK && value.data == third.data);
  EXPECT(silvics_cursor_entry(cursor, &guard, &at, &value) == SILVICS_OK && value.data == NULL);
  EXPECT(*(int *)third.data == 2);  // removed, and protected by the guard
  EXPECT(silvics_unpin(&guard) == SILVICS_OK && silvics_flush(map) == SILVICS_OK);
  EXPECT(atomic_load(&store.live) == 1);

  // The cursor keeps the map's last buffer until it is closed.
  EXPECT(silvics_destroy(map) == SILVICS_OK && atomic_load(&store.live) == 1);
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK && atomic_load(&store.live) == 0);
}

// A destructor that calls the map, while it lives and while it is destroyed.
static void destructors_that_call(bool debug) {
  struct store store = {.debug = debug};
  silvics_map *map = made(SILVICS_WORDS, SILVICS_BYTES, release, &store);
  store.map = map;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 500; ++i) {
      EXPECT(silvics_insert(map, NULL, silvics_word_key(i), buffer(&store, 1), NULL) >= 0);
    }
  }
  EXPECT(silvics_flush(map) == SILVICS_OK && store.calls >= 1000);
  EXPECT(silvics_check(map, NULL) == SILVICS_OK);
  EXPECT(silvics_destroy(map) == SILVICS_OK && atomic_load(&store.live) == 0);

  // The destructors of a destroyed map run when its last cursor is closed, and still call it.
  silvics_cursor *cursor;
  map = made(SILVICS_WORDS, SILVICS_BYTES, release, &store);
  store.map = map;
  EXPECT(silvics_insert(map, NULL, silvics_word_key(1), buffer(&store, 1), NULL) == SILVICS_OK);
  EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
  EXPECT(silvics_destroy(map) == SILVICS_OK && atomic_load(&store.live) == 1);
  EXPECT(silvics_cursor_close(cursor) == SILVICS_OK && atomic_load(&store.live) == 0);
}

// At the limit a call fails, and the program keeps its buffer.
static void limits(void) {
  struct store store = {0};
  silvics_options options;
  silvics_budget *budget;
  EXPECT(silvics_budget_create(4 << 20, &budget) == SILVICS_OK);
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.values = SILVICS_BYTES;
  options.destroy = release;
  options.context = &store;
  options.budget = budget;
  silvics_map *map;
  EXPECT(silvics_create(&options, &map) == SILVICS_OK);
  silvics_status status = SILVICS_OK;
  uint64_t entries = 0;
  for (; status == SILVICS_OK; ++entries) {
    const silvics_value value = buffer(&store, 1);
    status = silvics_insert(map, NULL, silvics_word_key(entries), value, NULL);
    if (status != SILVICS_OK) release(&store, value.data, value.word);
  }
  EXPECT(status == SILVICS_ERROR_LIMIT && strstr(silvics_last_error(), "4194304") != NULL);
  EXPECT(silvics_len(map) == entries - 1 && atomic_load(&store.live) == (int)entries - 1);

  // Of a batch, the first entries are in, and `done` says how many.
  enum { COUNT = 100000 };
  silvics_key *keys = malloc(COUNT * sizeof *keys);
  silvics_value *values = malloc(COUNT * sizeof *values);
  EXPECT(keys != NULL && values != NULL);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT(silvics_remove(map, NULL, silvics_word_key(i), NULL) == SILVICS_OK);
  }
  for (uint64_t i = 0; i < COUNT; ++i) {
    keys[i] = silvics_word_key(i < 1000 ? i : 1000000 + i);
    values[i] = buffer(&store, 1);
  }
  size_t done = 0;
  const size_t before = silvics_len(map);
  EXPECT(silvics_insert_many(map, NULL, keys, values, COUNT, &done) == SILVICS_ERROR_LIMIT);
  EXPECT(done > 0 && done < COUNT && silvics_len(map) == before + done);
  for (uint64_t i = done; i < COUNT; ++i) release(&store, values[i].data, values[i].word);
  EXPECT(silvics_flush(map) == SILVICS_OK);
  EXPECT((size_t)atomic_load(&store.live) == silvics_len(map));
  free(keys);
  free(values);

  EXPECT(silvics_bytes(map) == silvics_budget_bytes(budget) && silvics_bytes(map) <= 4 << 20);
  EXPECT(silvics_budget_close(budget) == SILVICS_OK);
  for (uint64_t i = 0; i < entries; ++i) {
    EXPECT(silvics_remove(map, NULL, silvics_word_key(i), NULL) >= 0);
  }
  size_t returned = 0;
  EXPECT(silvics_shrink(map, &returned) == SILVICS_OK && returned > 0);
  EXPECT(silvics_destroy(map) == SILVICS_OK && atomic_load(&store.live) == 0);
}

// A key that is longer than the structure takes.
static void long_keys(void) {
  silvics_options options;
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.structure = "art";
  options.keys = SILVICS_BYTES;
  silvics_map *map;
  EXPECT(silvics_create(&options, &map) == SILVICS_OK);
  const size_t size = 1 << 20;
  char *text = calloc(size, 1);
  EXPECT(text != NULL);
  const silvics_key key = silvics_bytes_key(text, size);
  EXPECT(silvics_insert(map, NULL, key, silvics_word_value(1), NULL) == SILVICS_ERROR_KEY_LENGTH);
  EXPECT(silvics_get(map, NULL, key, NULL) == SILVICS_ABSENT && silvics_len(map) == 0);
  free(text);
  EXPECT(silvics_destroy(map) == SILVICS_OK);
}

// Each structure by its name.
static void structures(void) {
  for (int keys = SILVICS_WORDS; keys <= SILVICS_BYTES; ++keys) {
    char names[1000];
    snprintf(names, sizeof names, "%s", silvics_structures(keys));
    int count = 0;
    for (char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", "), ++count) {
      silvics_options options;
      EXPECT(silvics_options_init(&options) == SILVICS_OK);
      options.structure = name;
      options.keys = keys;
      silvics_map *map;
      EXPECT(silvics_create(&options, &map) == SILVICS_OK);
      for (uint64_t i = 0; i < 100; ++i) {
        const uint64_t number = i * 37 % 100;
        const silvics_key one =
            keys == SILVICS_WORDS ? silvics_word_key(number) : silvics_bytes_key(&number, 1);
        EXPECT(silvics_insert(map, NULL, one, silvics_word_value(number), NULL) == SILVICS_OK);
      }
      silvics_cursor *cursor;
      silvics_value value;
      EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
      for (uint64_t i = 0; i < 100; ++i) {
        EXPECT(silvics_cursor_next(cursor, NULL, NULL, &value) == SILVICS_OK && value.word == i);
      }
      EXPECT(silvics_cursor_close(cursor) == SILVICS_OK);
      const silvics_status first = silvics_first(map, NULL, NULL, &value);
      EXPECT(first == SILVICS_ERROR_UNSUPPORTED || (first == SILVICS_OK && value.word == 0));
      size_t entries = 0;
      EXPECT(silvics_check(map, &entries) == SILVICS_OK && entries == 100);
      EXPECT(silvics_destroy(map) == SILVICS_OK);
    }
    EXPECT(count >= 4);
  }
  EXPECT(strcmp(silvics_structures(2), "") == 0);
}

// Wrong arguments.
static void mistakes(bool debug) {
  silvics_options options;
  silvics_map *map = NULL;
  EXPECT(silvics_options_init(NULL) == SILVICS_ERROR_NULL);
  EXPECT(silvics_create(NULL, &map) == SILVICS_ERROR_NULL);
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  EXPECT(silvics_create(&options, NULL) == SILVICS_ERROR_NULL);
  options.size = 8;
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_OPTION);
  EXPECT(strstr(silvics_last_error(), "silvics_options_init") != NULL);
  EXPECT(silvics_options_init(&options) == SILVICS_OK);
  options.structure = "rope";
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_STRUCTURE && map == NULL);
  EXPECT(strstr(silvics_last_error(), "no structure `rope`: choose one of ") != NULL);
  EXPECT(strstr(silvics_last_error(), "citrus") == NULL);  // it cannot scan
  options.structure = "words";
  options.keys = SILVICS_BYTES;
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_STRUCTURE);
  options.keys = SILVICS_WORDS;
  options.structure = "citrus";
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_STRUCTURE);
  options.structure = NULL;
  options.keys = 9;
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_OPTION);
  options.keys = SILVICS_WORDS;
  options.pages = -1;
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_OPTION);
  options.pages = SILVICS_PAGES_SMALL;
  options.destroy = release;
  EXPECT(silvics_create(&options, &map) == SILVICS_ERROR_OPTION);
  options.destroy = NULL;
  EXPECT(silvics_create(&options, &map) == SILVICS_OK);

  silvics_value value;
  const silvics_key one = silvics_word_key(1);
  EXPECT(silvics_get(NULL, NULL, one, &value) == SILVICS_ERROR_NULL && silvics_len(NULL) == 0);
  // The guard was one of a map of numbers, and is unpinned: it must not be used for no map.
  silvics_guard old;
  EXPECT(silvics_pin(map, &old) == SILVICS_OK && silvics_repin(&old) == SILVICS_OK);
  EXPECT(silvics_get(map, &old, one, &value) == SILVICS_ABSENT);
  EXPECT(silvics_unpin(&old) == SILVICS_OK);
  EXPECT(silvics_get(NULL, &old, one, &value) == SILVICS_ERROR_NULL);
  EXPECT(silvics_get(map, &old, one, &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_get(map, NULL, key("text"), &value) == SILVICS_ERROR_KEY);
  EXPECT(silvics_insert(map, NULL, one, silvics_buffer_value(&value, 1), NULL) ==
         SILVICS_ERROR_VALUE);
  EXPECT(silvics_cursor_open_prefix(map, key("a"), (silvics_cursor **)&value) == SILVICS_ERROR_KEY);
  EXPECT(silvics_cursor_next(NULL, NULL, NULL, NULL) == SILVICS_ERROR_NULL);
  EXPECT(silvics_pin(map, NULL) == SILVICS_ERROR_NULL && silvics_unpin(NULL) == SILVICS_ERROR_NULL);
  silvics_map *texts = made(SILVICS_BYTES, SILVICS_WORDS, NULL, NULL);
  EXPECT(silvics_get(texts, NULL, silvics_bytes_key(NULL, 5), &value) == SILVICS_ERROR_KEY);
  EXPECT(silvics_get(texts, NULL, silvics_bytes_key(NULL, 0), &value) == SILVICS_ABSENT);
  EXPECT(silvics_destroy(texts) == SILVICS_OK);
  EXPECT(strcmp(silvics_strerror(SILVICS_ERROR_KEY), silvics_strerror(1234)) != 0);
  EXPECT(strlen(silvics_version()) >= 5);

  // A guard is for its map.
  silvics_map *other = made(SILVICS_WORDS, SILVICS_BYTES, NULL, NULL);
  silvics_guard guard;
  EXPECT(silvics_pin(map, &guard) == SILVICS_OK);
  EXPECT(silvics_get(other, &guard, one, &value) == SILVICS_ERROR_GUARD);
  EXPECT(silvics_insert(other, NULL, one, silvics_word_value(1), NULL) == SILVICS_ERROR_VALUE);
  if (debug) EXPECT(silvics_destroy(map) == SILVICS_ERROR_BUSY);
  if (debug) EXPECT(silvics_check(map, NULL) == SILVICS_ERROR_BUSY);
  EXPECT(silvics_repin(&guard) == SILVICS_OK && silvics_unpin(&guard) == SILVICS_OK);
  EXPECT(silvics_destroy(other) == SILVICS_OK);

  if (debug) {
    silvics_cursor *cursor;
    silvics_budget *budget;
    EXPECT(silvics_cursor_open(map, NULL, NULL, &cursor) == SILVICS_OK);
    EXPECT(silvics_budget_create(0, &budget) == SILVICS_OK);
    EXPECT(silvics_get((silvics_map *)cursor, NULL, one, &value) == SILVICS_ERROR_HANDLE);
    EXPECT(silvics_cursor_close(cursor) == SILVICS_OK);
    EXPECT(silvics_cursor_close(cursor) == SILVICS_ERROR_HANDLE);
    EXPECT(silvics_cursor_next(cursor, NULL, NULL, NULL) == SILVICS_ERROR_HANDLE);
    EXPECT(silvics_budget_close(budget) == SILVICS_OK);
    EXPECT(silvics_budget_close(budget) == SILVICS_ERROR_HANDLE);
  }
  EXPECT(silvics_destroy(map) == SILVICS_OK);
  if (debug) {
    // A new map does not take the address of the old one.
    silvics_map *next = made(SILVICS_WORDS, SILVICS_WORDS, NULL, NULL);
    EXPECT(silvics_destroy(map) == SILVICS_ERROR_HANDLE && silvics_destroy(next) == SILVICS_OK);
    EXPECT(silvics_get(map, NULL, one, &value) == SILVICS_ERROR_HANDLE);
    EXPECT(silvics_len(map) == 0);
  }
}

int main(int argc, char **argv) {
  const bool debug = argc > 1 && strcmp(argv[1], "debug") == 0;
  words();
  batches();
  cursors();
  ends();
  buffers();
  destructors_that_call(debug);
  limits();
  long_keys();
  structures();
  mistakes(debug);
  puts("behaviour: ok");
  return 0;
}
