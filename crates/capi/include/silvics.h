// Concurrent ordered maps: the C interface of silvics. Generated from crates/capi; do not edit.
//
// Any thread may use a map, and none has to be registered. docs/c.md shows how to begin.
#ifndef SILVICS_H
#define SILVICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The result of a call. Zero and positive codes are outcomes, negative ones are errors: after an
// error the map is as it was, unless the call says otherwise. Codes keep their numbers in later
// versions.
enum silvics_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The call succeeded.
  SILVICS_OK = 0,
  // The key is absent, or there is no entry at that place.
  SILVICS_ABSENT = 1,
  // Put-if-absent found the key present, and changed nothing.
  SILVICS_PRESENT = 2,
  // An upsert replaced a value.
  SILVICS_REPLACED = 3,
  // The key has another value than the expected one, and nothing changed.
  SILVICS_MISMATCH = 4,
  // An argument is NULL that must not be.
  SILVICS_ERROR_NULL = -1,
  // In debug builds: the handle is not open, or it is one of another kind. In release builds
  // such a call is undefined behaviour.
  SILVICS_ERROR_HANDLE = -2,
  // The key is a number and the map has byte strings as keys, or the reverse.
  SILVICS_ERROR_KEY = -3,
  // The value is a number and the map has buffers as values, or the reverse.
  SILVICS_ERROR_VALUE = -4,
  // No structure has this name, or it does not take these keys.
  SILVICS_ERROR_STRUCTURE = -5,
  // An option has no such value.
  SILVICS_ERROR_OPTION = -6,
  // The structure of the map lacks the capability.
  SILVICS_ERROR_UNSUPPORTED = -7,
  // The map is at its memory limit.
  SILVICS_ERROR_LIMIT = -8,
  // The system refused memory.
  SILVICS_ERROR_MEMORY = -9,
  // The key is longer than the structure takes.
  SILVICS_ERROR_KEY_LENGTH = -10,
  // The call returns memory of the map, so it needs a guard of the map.
  SILVICS_ERROR_GUARD = -11,
  // The map is in use: a cursor or a guard of it is open, or in debug builds another call.
  SILVICS_ERROR_BUSY = -12,
  // The map of the cursor is destroyed, or is being destroyed.
  SILVICS_ERROR_CLOSED = -13,
  // A check found a broken invariant: a bug of silvics, or memory that the program overwrote.
  SILVICS_ERROR_CORRUPT = -14,
  // A bug of silvics: the call panicked. Destroy the map. It is unknown who owns the buffers of
  // the call.
  SILVICS_ERROR_PANIC = -15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum silvics_status silvics_status;
#else
typedef int32_t silvics_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of the keys, or of the values, of a map.
typedef enum {
  // Numbers of 64 bits. Keys are in the order of `uint64_t`.
  SILVICS_WORDS = 0,
  // Keys: byte strings of any length, in the order of `memcmp`; the shorter of two comes first
  // if it is a prefix of the other. Values: buffers, which the map owns.
  SILVICS_BYTES = 1,
} silvics_kind;

// The pages that the pools of a map ask the system for.
typedef enum {
  // Huge pages of 2 MiB once the map is large, where the system has them.
  SILVICS_PAGES_THP = 0,
  // Pages of 4 KiB.
  SILVICS_PAGES_SMALL = 1,
  // Huge pages of 2 MiB from those that the administrator reserved.
  SILVICS_PAGES_HUGETLB = 2,
} silvics_pages;

// A limit of bytes that several maps share.
typedef struct silvics_budget silvics_budget;

// A position in a map. It stands at an entry, before the first one, or behind the last one.
//
// It pins nothing between calls, and stays valid whatever other threads insert and remove. Moves
// in one direction return every key that is present all the while, and no key that is absent all
// the while. A cursor reads up to 512 entries ahead, so it may miss writes to these. One thread at
// a time may use it.
typedef struct silvics_cursor silvics_cursor;

// A map.
typedef struct silvics_map silvics_map;

// Destroys a buffer: `context` is that of the options.
//
// The library calls it once for each buffer that the map owned, after the last guard is gone that
// may have seen it. Any thread may be the caller: inside any call on the map, and inside
// `silvics_destroy`.
//
// It may call the map, with guards and cursors of its own. It must not destroy or check that map,
// and must not use a cursor that another call uses at the time: a debug library returns
// `SILVICS_ERROR_BUSY`, and for a release library this is undefined behaviour. It must not throw
// or unwind: the process aborts then.
typedef void (*silvics_destructor)(void *context, void *data, uint64_t size);

// The options of a map. Initialise them by `silvics_options_init`, and then set what differs.
typedef struct {
  // `sizeof(silvics_options)`, by which later versions know the fields that the program has.
  size_t size;
  // The name of the structure, as `silvics_structures` lists them; NULL for the default one:
  // `words` for numbers, `blocks` for byte strings.
  const char *structure;
  // The kind of the keys, a `silvics_kind`.
  int32_t keys;
  // The kind of the values, a `silvics_kind`.
  int32_t values;
  // The pages, a `silvics_pages`.
  int32_t pages;
  // The most bytes that the map may hold from the system; 0 for no limit. Buffers are not
  // counted.
  size_t memory_limit;
  // A limit that the map shares with others, instead of `memory_limit`; NULL for none.
  const silvics_budget *budget;
  // Destroys the buffers of a map of buffers; NULL if nothing is to be done. A map of numbers
  // takes none.
  silvics_destructor destroy;
  // The first argument of `destroy`.
  void *context;
} silvics_options;

// A pin: while it lasts, all buffers and byte keys that calls with it have returned stay valid.
// It lies where the program puts it, such as on the stack, and must not be moved or copied.
// Only the thread that has pinned may use it.
typedef struct {
  // For the library alone.
  uint64_t words[8];
} silvics_guard;

// A key: a number, as `silvics_word_key` makes it, or a byte string, as
// `silvics_bytes_key` does.
typedef struct {
  // The number, or the length of the byte string.
  uint64_t word;
  // The first byte of the byte string; NULL for a number.
  const void *data;
} silvics_key;

// A value: a number, or a buffer of the program.
typedef struct {
  // The number, or the size of the buffer. The library passes the size on, and does not use it.
  uint64_t word;
  // The buffer; NULL for a number.
  void *data;
} silvics_value;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns a sentence about a code. It is never NULL, and valid for ever.
const char *silvics_strerror(int32_t status);

// Returns a sentence about the last error of the calling thread, with names and numbers: an empty
// one if no call has failed. It is valid until the next error of this thread.
const char *silvics_last_error(void);

// Returns the version of the library, such as `0.2.0`.
const char *silvics_version(void);

// Fills options with their default values.
//
// # Safety
// `options` is NULL or writable.
silvics_status silvics_options_init(silvics_options *options);

// Makes a map with the options, and writes its handle to `map`. Any thread may use a map, and no
// thread has to be registered.
//
// # Safety
// `options` is NULL or readable, with a name that is NULL or a string, and a budget that is NULL
// or open. `map` is NULL or writable.
silvics_status silvics_create(const silvics_options *options, silvics_map **map);

// Destroys a map and its buffers. NULL is allowed.
//
// Cursors of the map may be open: each of their calls but `silvics_cursor_close` returns
// `SILVICS_ERROR_CLOSED` from now on, and the last one that is closed frees the map's memory and
// destroys its buffers. Each call on the map by a destructor inside this call fails.
//
// # Safety
// The map is NULL or open, no other call uses it, and no guard of it is pinned. A debug build
// returns an error if this is not so.
silvics_status silvics_destroy(silvics_map *map);

// Makes a budget: a limit of bytes for all maps that have it in their options. 0 is no limit.
//
// # Safety
// `budget` is NULL or writable.
silvics_status silvics_budget_create(size_t limit, silvics_budget **budget);

// Closes a budget. Maps that have it keep its limit. NULL is allowed.
//
// # Safety
// The budget is NULL or open, and no other thread uses the handle.
silvics_status silvics_budget_close(silvics_budget *budget);

// Returns the bytes that all maps of a budget hold from the system; 0 for NULL.
//
// # Safety
// The budget is NULL or open.
size_t silvics_budget_bytes(const silvics_budget *budget);

// Returns the names of the structures that a map with keys of this kind can have, divided by
// commas. The string is valid for ever; it is empty if there is no such kind.
const char *silvics_structures(int32_t keys);

// Pins a map: buffers and byte keys that calls with this guard return stay valid until
// `silvics_unpin`. Several calls with one guard are also faster than without. A thread may have
// several guards, of one map or of several.
//
// While a thread is pinned, nothing that is removed from the map can be freed, nor from other maps
// without a memory limit: so unpin soon, or call `silvics_repin` from time to time.
//
// # Safety
// The map is NULL or open. `guard` is NULL or writable, and not pinned.
silvics_status silvics_pin(const silvics_map *map, silvics_guard *guard);

// Ends a pin. All buffers and byte keys that calls with the guard have returned are invalid.
//
// # Safety
// `guard` is NULL or writable. If it is pinned, this thread has pinned it, and its map is open.
silvics_status silvics_unpin(silvics_guard *guard);

// Pins anew: removed entries can be freed, and all that calls with the guard have returned is
// invalid. It has no effect while this thread has other guards.
//
// # Safety
// That of `silvics_unpin`.
silvics_status silvics_repin(silvics_guard *guard);

// Looks a key up, and writes its value to `value`. Returns `SILVICS_OK` or `SILVICS_ABSENT`. Under
// a guard the call allocates nothing. Without one it pins for itself, and on a map of buffers it
// may destroy removed ones.
//
// `guard` may be NULL if the values are numbers, or if `value` is NULL.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable; `value`
// is NULL or writable.
silvics_status silvics_get(const silvics_map *map,
                           const silvics_guard *guard,
                           silvics_key key,
                           silvics_value *value);

// Put-if-absent: gives a key a value unless it is present. Returns `SILVICS_OK`, or
// `SILVICS_PRESENT` after writing the present value to `present`. The map owns the buffer if the
// result is `SILVICS_OK`, and only then.
//
// `guard` may be NULL if the values are numbers, or if `present` is NULL.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable;
// `present` is NULL or writable. The map may own the buffer: no map has it.
silvics_status silvics_try_insert(const silvics_map *map,
                                  const silvics_guard *guard,
                                  silvics_key key,
                                  silvics_value value,
                                  silvics_value *present);

// Upsert: gives a key a value. Returns `SILVICS_OK` if the key was absent, or `SILVICS_REPLACED`
// after writing the old value to `old`. The map owns the buffer unless the call fails.
//
// `guard` may be NULL if the values are numbers, or if `old` is NULL.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable; `old`
// is NULL or writable. The map may own the buffer: no map has it.
silvics_status silvics_insert(const silvics_map *map,
                              const silvics_guard *guard,
                              silvics_key key,
                              silvics_value value,
                              silvics_value *old);

// Removes a key. Returns `SILVICS_OK` after writing its value to `old`, or `SILVICS_ABSENT`. The
// map destroys the buffer once no guard may have seen it.
//
// `guard` may be NULL if the values are numbers, or if `old` is NULL.
//
// # Safety
// That of `silvics_get`.
silvics_status silvics_remove(const silvics_map *map,
                              const silvics_guard *guard,
                              silvics_key key,
                              silvics_value *old);

// Brings a key from one state to another in one atomic step: a state is a value, or NULL for
// *absent*. Two buffers are equal if they are the same. Returns:
//
// * `SILVICS_OK`: the key had the expected state. The map owns the desired buffer, and destroys
//   the expected one once no guard may have seen it.
// * `SILVICS_MISMATCH`: the key has another value, which is written to `present`.
// * `SILVICS_ABSENT`: the key is absent, but a value was expected.
//
// `guard` may be NULL if the values are numbers, or if `present` is NULL.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable;
// `expected` and `desired` are NULL or readable; `present` is NULL or writable. The map may own
// the desired buffer: no map has it.
silvics_status silvics_compare_exchange(const silvics_map *map,
                                        const silvics_guard *guard,
                                        silvics_key key,
                                        const silvics_value *expected,
                                        const silvics_value *desired,
                                        silvics_value *present);

// Looks up `count` keys. Writes the value of each to the same position in `values`, and whether it
// is present to that in `found`. The value of an absent key stays as it is. The cache misses of
// the lookups overlap. Each lookup takes effect at its own moment.
//
// `guard` may be NULL if the values are numbers.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; `keys` has `count` keys with readable
// bytes, and `values` and `found` have as many writable places.
silvics_status silvics_get_many(const silvics_map *map,
                                const silvics_guard *guard,
                                const silvics_key *keys,
                                size_t count,
                                silvics_value *values,
                                bool *found);

// Looks up `count` keys of a map from numbers to numbers, as `silvics_get_many` does.
//
// # Safety
// That of `silvics_get_many`.
silvics_status silvics_get_words(const silvics_map *map,
                                 const silvics_guard *guard,
                                 const uint64_t *keys,
                                 size_t count,
                                 uint64_t *values,
                                 bool *found);

// Upserts `count` entries, in order: if a key occurs twice, the later one wins. Each upsert takes
// effect at its own moment. Writes to `done` how many entries are in the map: all of them, unless
// the call fails. The map owns the buffers of these, and the program those of the others.
//
// `guard` may be NULL.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; `keys` has `count` keys with readable
// bytes, and `values` as many values; `done` is NULL or writable. The map may own the buffers: no
// map has them, and none occurs twice.
silvics_status silvics_insert_many(const silvics_map *map,
                                   const silvics_guard *guard,
                                   const silvics_key *keys,
                                   const silvics_value *values,
                                   size_t count,
                                   size_t *done);

// Upserts `count` entries of a map from numbers to numbers, as `silvics_insert_many` does.
//
// # Safety
// That of `silvics_insert_many`.
silvics_status silvics_insert_words(const silvics_map *map,
                                    const silvics_guard *guard,
                                    const uint64_t *keys,
                                    const uint64_t *values,
                                    size_t count,
                                    size_t *done);

// Finds the entry with the smallest key, and writes its key and its value. Returns `SILVICS_OK`,
// or `SILVICS_ABSENT` if the map is empty. At some moment during the call it was the first entry
// of the map.
//
// `guard` may be NULL if no byte key and no buffer is to be written. Some structures have no ends:
// their maps return `SILVICS_ERROR_UNSUPPORTED`.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; `key` and `value` are NULL or writable.
silvics_status silvics_first(const silvics_map *map,
                             const silvics_guard *guard,
                             silvics_key *key,
                             silvics_value *value);

// Finds the entry with the largest key, and writes its key and its value. Returns `SILVICS_OK`, or
// `SILVICS_ABSENT` if the map is empty. At some moment during the call it was the last entry of
// the map.
//
// `guard` may be NULL if no byte key and no buffer is to be written. Some structures have no ends:
// their maps return `SILVICS_ERROR_UNSUPPORTED`.
//
// # Safety
// The map is NULL or open; `guard` is NULL or readable; `key` and `value` are NULL or writable.
silvics_status silvics_last(const silvics_map *map,
                            const silvics_guard *guard,
                            silvics_key *key,
                            silvics_value *value);

// Removes the entry with the smallest key as `silvics_first` finds it. The map destroys the buffer
// once no guard may have seen it.
//
// # Safety
// That of `silvics_first`.
silvics_status silvics_pop_first(const silvics_map *map,
                                 const silvics_guard *guard,
                                 silvics_key *key,
                                 silvics_value *value);

// Removes the entry with the largest key as `silvics_last` finds it. The map destroys the buffer
// once no guard may have seen it.
//
// # Safety
// That of `silvics_last`.
silvics_status silvics_pop_last(const silvics_map *map,
                                const silvics_guard *guard,
                                silvics_key *key,
                                silvics_value *value);

// Opens a cursor over the entries from the key `from` on, before the key `to`: `NULL` is no bound.
// It stands before the first entry.
//
// # Safety
// The map is NULL or open; `from` and `to` are NULL or keys with readable bytes; `cursor` is NULL
// or writable.
silvics_status silvics_cursor_open(const silvics_map *map,
                                   const silvics_key *from,
                                   const silvics_key *to,
                                   silvics_cursor **cursor);

// Opens a cursor over the entries whose byte keys begin with `prefix`, before the first of them.
//
// # Safety
// The map is NULL or open; the bytes of the prefix are readable; `cursor` is NULL or writable.
silvics_status silvics_cursor_open_prefix(const silvics_map *map,
                                          silvics_key prefix,
                                          silvics_cursor **cursor);

// Closes a cursor. If its map is destroyed and this is the last cursor, the map's memory is freed
// and its buffers are destroyed. NULL is allowed.
//
// # Safety
// The cursor is NULL or open, and no other thread uses it.
silvics_status silvics_cursor_close(silvics_cursor *cursor);

// Moves a cursor to the next entry; from before the first entry, to the first one.
//
// Returns `SILVICS_OK` after writing the entry's key and value, or `SILVICS_ABSENT` if there is no
// such entry. A byte key is valid until the cursor moves again. A number is the value that the
// cursor read ahead. A buffer is that of the key at the moment of the call: it is valid under the
// guard, and `data` is NULL if the key was removed since.
//
// `guard` may be NULL if the values are numbers, or if `value` is NULL.
//
// # Safety
// The cursor is NULL or open, and no other thread uses it; `guard` is NULL or readable; `key` and
// `value` are NULL or writable.
silvics_status silvics_cursor_next(silvics_cursor *cursor,
                                   const silvics_guard *guard,
                                   silvics_key *key,
                                   silvics_value *value);

// Moves a cursor to the previous entry; from behind the last entry, to the last one.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`.
silvics_status silvics_cursor_prev(silvics_cursor *cursor,
                                   const silvics_guard *guard,
                                   silvics_key *key,
                                   silvics_value *value);

// Moves a cursor to the first entry.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`.
silvics_status silvics_cursor_first(silvics_cursor *cursor,
                                    const silvics_guard *guard,
                                    silvics_key *key,
                                    silvics_value *value);

// Moves a cursor to the last entry.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`.
silvics_status silvics_cursor_last(silvics_cursor *cursor,
                                   const silvics_guard *guard,
                                   silvics_key *key,
                                   silvics_value *value);

// Writes the entry at which a cursor stands, and does not move it.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`.
silvics_status silvics_cursor_entry(silvics_cursor *cursor,
                                    const silvics_guard *guard,
                                    silvics_key *key,
                                    silvics_value *value);

// Moves a cursor to the first entry at or after a key.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`. The bytes of the key are readable.
silvics_status silvics_cursor_seek(silvics_cursor *cursor,
                                   const silvics_guard *guard,
                                   silvics_key to,
                                   silvics_key *key,
                                   silvics_value *value);

// Moves a cursor to the last entry at or before a key.
// Its result is that of `silvics_cursor_next`.
//
// # Safety
// That of `silvics_cursor_next`. The bytes of the key are readable.
silvics_status silvics_cursor_seek_for_prev(silvics_cursor *cursor,
                                            const silvics_guard *guard,
                                            silvics_key to,
                                            silvics_key *key,
                                            silvics_value *value);

// Returns the number of keys; 0 for NULL. It is exact while no thread writes: otherwise each
// concurrent call may or may not be counted.
//
// # Safety
// The map is NULL or open.
size_t silvics_len(const silvics_map *map);

// Returns the bytes that the map holds from the system, exactly: live, retired and free nodes and
// keys, and bookkeeping; 0 for NULL. Buffers are not counted. If the map has a budget, the result
// is that of all maps which have it.
//
// # Safety
// The map is NULL or open.
size_t silvics_bytes(const silvics_map *map);

// Destroys removed buffers that no guard protects: all buffers removed by this thread or by ended
// threads, and some removed by other threads. Call it without a guard.
//
// # Safety
// The map is NULL or open.
silvics_status silvics_flush(const silvics_map *map);

// Flushes as `silvics_flush` does, and returns memory without entries to the system. Writes the
// number of bytes that it returned to `bytes`. Call it after most of a map was removed, and
// without a guard. O(slabs).
//
// # Safety
// The map is NULL or open; `bytes` is NULL or writable.
silvics_status silvics_shrink(const silvics_map *map, size_t *bytes);

// Walks the whole map, verifies the invariants of its structure, and writes the number of entries
// to `entries`. Returns `SILVICS_ERROR_CORRUPT` if one is broken; then `silvics_last_error` says
// which. O(entries).
//
// # Safety
// The map is NULL or open; no other call uses it, and no guard of it is pinned; `entries` is NULL
// or writable. An open cursor is an error, and in debug builds a guard or another call is, too.
silvics_status silvics_check(silvics_map *map, size_t *entries);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#ifdef __cplusplus
#define SILVICS_INLINE inline
#else
#define SILVICS_INLINE static inline
#endif
// A key that is a number.
SILVICS_INLINE silvics_key silvics_word_key(uint64_t word) {
  silvics_key key = {word, NULL};
  return key;
}

// A key that is a byte string.
SILVICS_INLINE silvics_key silvics_bytes_key(const void *data, size_t size) {
  silvics_key key = {size, data == NULL && size == 0 ? "" : data};
  return key;
}

// A value that is a number.
SILVICS_INLINE silvics_value silvics_word_value(uint64_t word) {
  silvics_value value = {word, NULL};
  return value;
}

// A value that is a buffer.
SILVICS_INLINE silvics_value silvics_buffer_value(void *data, uint64_t size) {
  silvics_value value = {size, data};
  return value;
}

#endif  // SILVICS_H
