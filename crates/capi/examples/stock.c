// A stock of articles: numbers to numbers, with puts, updates by compare-and-swap, and a scan.
//
//     cc stock.c $(pkg-config --cflags --libs silvics)

#include <inttypes.h>
#include <pthread.h>
#include <silvics.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARTICLES = 1000, ORDERS = 100000, CLERKS = 2 };

// Ends the program if a call failed.
static silvics_status must(silvics_status status) {
  if (status < 0) {
    fprintf(stderr, "stock: %s\n", silvics_last_error());
    exit(1);
  }
  return status;
}

// Takes one piece of an article, if there is one.
static bool take(silvics_map *stock, uint64_t article) {
  silvics_key key = silvics_word_key(article);
  silvics_value seen;
  if (must(silvics_get(stock, NULL, key, &seen)) == SILVICS_ABSENT) return false;
  while (seen.word > 0) {
    silvics_value less = silvics_word_value(seen.word - 1);
    // If another thread was faster, `seen` is what it left.
    if (must(silvics_compare_exchange(stock, NULL, key, &seen, &less, &seen)) == SILVICS_OK) {
      return true;
    }
  }
  return false;
}

static void *clerk(void *stock) {
  uint64_t state = (uintptr_t)&state, taken = 0;
  for (int order = 0; order < ORDERS; ++order) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    taken += take(stock, (state >> 33) % (2 * ARTICLES));
  }
  return (void *)(uintptr_t)taken;
}

int main(void) {
  silvics_options options;
  must(silvics_options_init(&options));
  options.memory_limit = 64 << 20;
  silvics_map *stock;
  must(silvics_create(&options, &stock));
  for (uint64_t article = 0; article < ARTICLES; ++article) {
    must(silvics_insert(stock, NULL, silvics_word_key(article), silvics_word_value(150), NULL));
  }

  pthread_t clerks[CLERKS];
  uint64_t taken = 0, left = 0, articles = 0;
  for (int i = 0; i < CLERKS; ++i) pthread_create(&clerks[i], NULL, clerk, stock);
  for (int i = 0; i < CLERKS; ++i) {
    void *pieces;
    pthread_join(clerks[i], &pieces);
    taken += (uintptr_t)pieces;
  }

  silvics_cursor *cursor;
  must(silvics_cursor_open(stock, NULL, NULL, &cursor));
  silvics_key key;
  silvics_value pieces;
  while (must(silvics_cursor_next(cursor, NULL, &key, &pieces)) == SILVICS_OK) {
    articles += 1;
    left += pieces.word;
  }
  must(silvics_cursor_close(cursor));
  printf("%" PRIu64 " articles, %" PRIu64 " pieces taken, %" PRIu64 " left, %zu bytes\n", articles,
         taken, left, silvics_bytes(stock));
  must(silvics_destroy(stock));
  return taken + left == ARTICLES * 150 && articles == ARTICLES ? 0 : 1;
}
