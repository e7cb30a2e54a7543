// Concurrent ordered maps: a C++20 interface over silvics.h. docs/c.md shows how to begin.
//
//   silvics::map<std::uint64_t, double>      numbers to numbers
//   silvics::map<std::string, employee>      strings to objects, which the map owns
//
// Any thread may call any method of a map. A number, a pointer, or another trivially copyable value
// of at most 8 bytes without padding is copied. Any other value is an object that the map owns: a
// view returns a pointer to it, which is valid while the view lives. A call that fails throws
// silvics::error, and leaves the map as it was.
#ifndef SILVICS_HPP
#define SILVICS_HPP

#include "silvics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace silvics {

// The failure of a call. what() is one sentence.
class error : public std::runtime_error {
 public:
  explicit error(silvics_status status)
      : std::runtime_error(silvics_last_error()), status_(status) {}
  silvics_status status() const noexcept { return status_; }

 private:
  silvics_status status_;
};

namespace detail {

// Throws if a call failed, and returns its outcome otherwise.
inline silvics_status checked(silvics_status status) {
  if (status < 0) throw error(status);
  return status;
}

// Whether values of type T are copied into the words of a map: a value has one representation, so
// that a compare and exchange of representations is one of values. That of floating-point numbers
// compares their bits.
template <class T>
concept word = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t) &&
               (std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);

// Keys of type K: how they are passed, and how they are returned.
template <class K>
struct keys;

template <std::integral K>
  requires(sizeof(K) <= sizeof(std::uint64_t))
struct keys<K> {
  using argument = K;
  using result = K;
  static constexpr silvics_kind kind = SILVICS_WORDS;
  // The order of signed numbers is that of their distances from the smallest one.
  static constexpr std::uint64_t shift =
      std::is_signed_v<K> ? std::uint64_t{1} << 63 : std::uint64_t{0};
  static silvics_key encode(K key) noexcept {
    return silvics_word_key(static_cast<std::uint64_t>(key) ^ shift);
  }
  static K decode(silvics_key key) noexcept { return static_cast<K>(key.word ^ shift); }
};

template <>
struct keys<std::string> {
  using argument = std::string_view;
  using result = std::string_view;
  static constexpr silvics_kind kind = SILVICS_BYTES;
  static silvics_key encode(std::string_view key) noexcept {
    return silvics_bytes_key(key.data(), key.size());
  }
  static std::string_view decode(silvics_key key) noexcept {
    return {static_cast<const char *>(key.data), static_cast<std::size_t>(key.word)};
  }
};

// Values of type T: a word, or an object that the map owns.
template <class T>
struct values {
  using found = const T *;
  using item = const T &;
  static constexpr silvics_kind kind = SILVICS_BYTES;
  static constexpr bool owned = true;
  static silvics_value encode(T value) {
    return silvics_buffer_value(new T(std::move(value)), sizeof(T));
  }
  static found decode(silvics_value value) noexcept { return static_cast<const T *>(value.data); }
  static found absent() noexcept { return nullptr; }
  // A value that the map has not taken.
  static void reject(silvics_value value) noexcept { delete static_cast<T *>(value.data); }
  static void destroy(void *, void *data, std::uint64_t) noexcept { delete static_cast<T *>(data); }
  static constexpr silvics_destructor destructor = &destroy;
};

template <word T>
struct values<T> {
  using found = std::optional<T>;
  using item = T;
  static constexpr silvics_kind kind = SILVICS_WORDS;
  static constexpr bool owned = false;
  static silvics_value encode(T value) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return silvics_word_value(word);
  }
  static found decode(silvics_value value) noexcept {
    std::array<unsigned char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value.word, sizeof(T));
    return std::bit_cast<T>(bytes);
  }
  static found absent() noexcept { return std::nullopt; }
  static void reject(silvics_value) noexcept {}
  static constexpr silvics_destructor destructor = nullptr;
};

// A value on its way into a map: deleted unless the map takes it.
template <class T>
class draft {
 public:
  explicit draft(T value) : value_(values<T>::encode(std::move(value))) {}
  draft(const draft &) = delete;
  draft &operator=(const draft &) = delete;
  ~draft() {
    if (held_) values<T>::reject(value_);
  }
  const silvics_value &value() const noexcept { return value_; }
  void taken() noexcept { held_ = false; }

 private:
  silvics_value value_;
  bool held_ = true;
};

struct closes_cursor {
  void operator()(silvics_cursor *cursor) const noexcept { silvics_cursor_close(cursor); }
};
using cursor = std::unique_ptr<silvics_cursor, closes_cursor>;

}  // namespace detail

// A limit of bytes that several maps share.
class budget {
 public:
  explicit budget(std::size_t limit) {
    silvics_budget *made = nullptr;
    detail::checked(silvics_budget_create(limit, &made));
    budget_.reset(made);
  }
  // The bytes that all maps of the budget hold.
  std::size_t bytes() const noexcept { return silvics_budget_bytes(budget_.get()); }
  const silvics_budget *get() const noexcept { return budget_.get(); }

 private:
  struct closes {
    void operator()(silvics_budget *budget) const noexcept { silvics_budget_close(budget); }
  };
  std::unique_ptr<silvics_budget, closes> budget_;
};

// The options of a map: see silvics_options.
struct options {
  const char *structure = nullptr;
  silvics_pages pages = SILVICS_PAGES_THP;
  std::size_t memory_limit = 0;
  const silvics::budget *budget = nullptr;
};

// The entries of a map, or of a range of it, in one direction: an input range. An entry whose
// object is removed before the range comes to it is left out. A key that is a string_view is valid
// until the next step.
template <class K, class T>
class entries {
 public:
  struct entry {
    typename detail::keys<K>::result key;
    typename detail::values<T>::item value;
  };

  class iterator {
   public:
    using value_type = entry;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    entry operator*() const {
      return {detail::keys<K>::decode(key_), *detail::values<T>::decode(value_)};
    }
    iterator &operator++() {
      step();
      return *this;
    }
    void operator++(int) { step(); }
    bool operator==(std::default_sentinel_t) const noexcept { return over_; }

   private:
    friend class entries;
    iterator(silvics_cursor *cursor, const silvics_guard *guard, bool reversed)
        : cursor_(cursor), guard_(guard), reversed_(reversed) {
      step();
    }
    void step() {
      const auto move = reversed_ ? silvics_cursor_prev : silvics_cursor_next;
      do {
        over_ = detail::checked(move(cursor_, guard_, &key_, &value_)) != SILVICS_OK;
      } while (!over_ && detail::values<T>::owned && value_.data == nullptr);
    }
    silvics_cursor *cursor_;
    const silvics_guard *guard_;
    bool reversed_;
    silvics_key key_{};
    silvics_value value_{};
    bool over_ = false;
  };

  iterator begin() {
    if (reversed_) {
      // The step of the iterator goes to the last entry from behind it.
      detail::checked(silvics_cursor_last(cursor_.get(), nullptr, nullptr, nullptr));
      detail::checked(silvics_cursor_next(cursor_.get(), nullptr, nullptr, nullptr));
    } else {
      detail::checked(silvics_cursor_first(cursor_.get(), nullptr, nullptr, nullptr));
      detail::checked(silvics_cursor_prev(cursor_.get(), nullptr, nullptr, nullptr));
    }
    return iterator(cursor_.get(), guard_, reversed_);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  template <class, class>
  friend class map;
  template <class, class>
  friend class view;
  entries(detail::cursor cursor, const silvics_guard *guard, bool reversed)
      : cursor_(std::move(cursor)), guard_(guard), reversed_(reversed) {}
  detail::cursor cursor_;
  const silvics_guard *guard_;
  bool reversed_;
};

template <class K, class T>
class view;

// A concurrent ordered map. K is an integer, or std::string for strings and byte strings.
template <class K, class T>
class map {
  using keys = detail::keys<K>;
  using values = detail::values<T>;

 public:
  using argument = typename keys::argument;

  explicit map(const options &from = {}) {
    silvics_options to;
    detail::checked(silvics_options_init(&to));
    to.structure = from.structure;
    to.keys = keys::kind;
    to.values = values::kind;
    to.pages = from.pages;
    to.memory_limit = from.memory_limit;
    to.budget = from.budget == nullptr ? nullptr : from.budget->get();
    to.destroy = values::destructor;
    silvics_map *made = nullptr;
    detail::checked(silvics_create(&to, &made));
    map_.reset(made);
  }

  // Pins the map: see silvics::view.
  silvics::view<K, T> pin() const { return silvics::view<K, T>(map_.get()); }

  // The value of a key. Objects are lent by a view.
  std::optional<T> get(argument key) const
    requires(!values::owned)
  {
    silvics_value value;
    const auto status = silvics_get(map_.get(), nullptr, keys::encode(key), &value);
    return detail::checked(status) == SILVICS_OK ? values::decode(value) : std::nullopt;
  }

  bool contains(argument key) const {
    const auto status = silvics_get(map_.get(), nullptr, keys::encode(key), nullptr);
    return detail::checked(status) == SILVICS_OK;
  }

  // Put-if-absent: whether the key was absent, and has this value now.
  bool try_insert(argument key, T value) {
    detail::draft<T> draft(std::move(value));
    const auto status =
        silvics_try_insert(map_.get(), nullptr, keys::encode(key), draft.value(), nullptr);
    if (detail::checked(status) != SILVICS_OK) return false;
    draft.taken();
    return true;
  }

  // Upsert: whether the key was absent. It has this value now.
  bool insert(argument key, T value) {
    detail::draft<T> draft(std::move(value));
    const auto status =
        silvics_insert(map_.get(), nullptr, keys::encode(key), draft.value(), nullptr);
    detail::checked(status);
    draft.taken();
    return status == SILVICS_OK;
  }

  // Removes a key: whether it was present.
  bool remove(argument key) {
    const auto status = silvics_remove(map_.get(), nullptr, keys::encode(key), nullptr);
    return detail::checked(status) == SILVICS_OK;
  }

  // Brings a key from one state to another in one atomic step; nullopt is the state absent. If the
  // key is in another state, returns false, and `expected` is that state.
  bool compare_exchange(argument key, std::optional<T> &expected, std::optional<T> desired)
    requires(!values::owned)
  {
    silvics_value from{}, to{}, present{};
    if (expected) from = values::encode(*expected);
    if (desired) to = values::encode(*desired);
    const auto status = detail::checked(silvics_compare_exchange(
        map_.get(), nullptr, keys::encode(key), expected ? &from : nullptr,
        desired ? &to : nullptr, &present));
    if (status == SILVICS_MISMATCH) expected = values::decode(present);
    if (status == SILVICS_ABSENT) expected = std::nullopt;
    return status == SILVICS_OK;
  }

  // Looks up all keys; `found` is as long as `of`. Their cache misses overlap.
  void get_many(std::span<const K> of, std::span<std::optional<T>> found) const
    requires(!values::owned)
  {
    const auto view = pin();
    view.get_many(of, found);
  }

  // Upserts all entries, in order. If it throws, a prefix of the entries is inserted.
  void insert_many(std::span<const K> of, std::span<const T> items)
    requires(!values::owned)
  {
    if (of.size() != items.size()) throw std::invalid_argument("insert_many: two lengths");
    constexpr std::size_t group = 64;
    std::array<silvics_key, group> some;
    std::array<silvics_value, group> words;
    for (std::size_t at = 0; at < of.size(); at += group) {
      const std::size_t count = std::min(group, of.size() - at);
      for (std::size_t i = 0; i < count; ++i) {
        some[i] = keys::encode(of[at + i]);
        words[i] = values::encode(items[at + i]);
      }
      detail::checked(silvics_insert_many(map_.get(), nullptr, some.data(), words.data(), count,
                                          nullptr));
    }
  }

  // The entries of a map of numbers, without a pin.
  entries<K, T> all() const
    requires(!values::owned)
  {
    return range(std::nullopt, std::nullopt);
  }
  entries<K, T> all_reversed() const
    requires(!values::owned)
  {
    return {cursor(std::nullopt, std::nullopt), nullptr, true};
  }
  // The entries from one key on, before another.
  entries<K, T> range(std::optional<argument> from, std::optional<argument> to) const
    requires(!values::owned)
  {
    return {cursor(from, to), nullptr, false};
  }

  // The number of keys: exact while no thread writes.
  std::size_t size() const noexcept { return silvics_len(map_.get()); }
  // The bytes that the map holds from the system, without the objects.
  std::size_t bytes() const noexcept { return silvics_bytes(map_.get()); }
  // Destroys removed objects that no view protects.
  void flush() { detail::checked(silvics_flush(map_.get())); }
  // Returns memory to the system, and the number of bytes.
  std::size_t shrink() {
    std::size_t bytes = 0;
    detail::checked(silvics_shrink(map_.get(), &bytes));
    return bytes;
  }
  // Verifies the structure, and returns the number of entries. No other thread uses the map.
  std::size_t check() {
    std::size_t count = 0;
    detail::checked(silvics_check(map_.get(), &count));
    return count;
  }
  silvics_map *handle() const noexcept { return map_.get(); }

 private:
  friend class silvics::view<K, T>;
  detail::cursor cursor(std::optional<argument> from, std::optional<argument> to) const {
    return opened(map_.get(), from, to);
  }
  static detail::cursor opened(const silvics_map *map, std::optional<argument> from,
                               std::optional<argument> to) {
    silvics_key low{}, high{};
    if (from) low = keys::encode(*from);
    if (to) high = keys::encode(*to);
    silvics_cursor *made = nullptr;
    detail::checked(
        silvics_cursor_open(map, from ? &low : nullptr, to ? &high : nullptr, &made));
    return detail::cursor(made);
  }
  struct destroys {
    void operator()(silvics_map *map) const noexcept { silvics_destroy(map); }
  };
  std::unique_ptr<silvics_map, destroys> map_;
};

// A map with its memory pinned, on one thread: what it returns is valid until the view ends.
template <class K, class T>
class view {
  using keys = detail::keys<K>;
  using values = detail::values<T>;
  using argument = typename keys::argument;

 public:
  // A pointer to the object, nullptr if the key is absent; or std::optional of a number.
  using found = typename values::found;

  view(const view &) = delete;
  view &operator=(const view &) = delete;
  ~view() { silvics_unpin(&guard_); }

  // Pins anew: all that the view has returned is invalid, and removed objects can be destroyed.
  void repin() { detail::checked(silvics_repin(&guard_)); }

  // What these methods return is valid while the view lives, so they cannot be called on a view
  // that ends with the expression.
  found get(argument key) const & {
    silvics_value value;
    const auto status = silvics_get(map_, &guard_, keys::encode(key), &value);
    return detail::checked(status) == SILVICS_OK ? values::decode(value) : values::absent();
  }

  // Upserts, and returns the value that the key had.
  found insert(argument key, T value) const & {
    detail::draft<T> draft(std::move(value));
    silvics_value old;
    const auto status = silvics_insert(map_, &guard_, keys::encode(key), draft.value(), &old);
    detail::checked(status);
    draft.taken();
    return status == SILVICS_REPLACED ? values::decode(old) : values::absent();
  }

  // Put-if-absent: the value that the key has already, if it is present.
  found try_insert(argument key, T value) const & {
    detail::draft<T> draft(std::move(value));
    silvics_value present;
    const auto status =
        silvics_try_insert(map_, &guard_, keys::encode(key), draft.value(), &present);
    if (detail::checked(status) == SILVICS_PRESENT) return values::decode(present);
    draft.taken();
    return values::absent();
  }

  // Removes a key, and returns the value that it had.
  found remove(argument key) const & {
    silvics_value value;
    const auto status = silvics_remove(map_, &guard_, keys::encode(key), &value);
    return detail::checked(status) == SILVICS_OK ? values::decode(value) : values::absent();
  }

  // Replaces the very object that `expected` points to: whether the key still had it.
  bool replace(argument key, const T *expected, T desired) const
    requires(values::owned)
  {
    detail::draft<T> draft(std::move(desired));
    const auto from = silvics_buffer_value(const_cast<T *>(expected), sizeof(T));
    const auto status = silvics_compare_exchange(map_, &guard_, keys::encode(key), &from,
                                                 &draft.value(), nullptr);
    if (detail::checked(status) != SILVICS_OK) return false;
    draft.taken();
    return true;
  }

  // Looks up all keys; `results` is as long as `of`. Their cache misses overlap.
  void get_many(std::span<const K> of, std::span<found> results) const & {
    if (of.size() != results.size()) throw std::invalid_argument("get_many: two lengths");
    constexpr std::size_t group = 64;
    std::array<silvics_key, group> some;
    std::array<silvics_value, group> words;
    std::array<bool, group> present;
    for (std::size_t at = 0; at < of.size(); at += group) {
      const std::size_t count = std::min(group, of.size() - at);
      for (std::size_t i = 0; i < count; ++i) some[i] = keys::encode(of[at + i]);
      detail::checked(silvics_get_many(map_, &guard_, some.data(), count, words.data(),
                                       present.data()));
      for (std::size_t i = 0; i < count; ++i) {
        results[at + i] = present[i] ? values::decode(words[i]) : values::absent();
      }
    }
  }

  using pair = std::optional<std::pair<typename keys::result, typename values::item>>;
  // The entries at both ends. Some structures have none: the call throws.
  pair first() const & { return end(silvics_first); }
  pair last() const & { return end(silvics_last); }
  pair pop_first() const & { return end(silvics_pop_first); }
  pair pop_last() const & { return end(silvics_pop_last); }

  // The entries of the map, or those from one key on, before another. They end before the view.
  entries<K, T> all() const & { return range(std::nullopt, std::nullopt); }
  entries<K, T> all_reversed() const & {
    return {map<K, T>::opened(map_, std::nullopt, std::nullopt), &guard_, true};
  }
  entries<K, T> range(std::optional<argument> from, std::optional<argument> to) const & {
    return {map<K, T>::opened(map_, from, to), &guard_, false};
  }
  // The entries whose keys begin with a string.
  entries<K, T> prefix(argument prefix) const &
    requires(keys::kind == SILVICS_BYTES)
  {
    silvics_cursor *made = nullptr;
    detail::checked(silvics_cursor_open_prefix(map_, keys::encode(prefix), &made));
    return {detail::cursor(made), &guard_, false};
  }

  found get(argument) const && = delete;
  found insert(argument, T) const && = delete;
  found try_insert(argument, T) const && = delete;
  found remove(argument) const && = delete;
  void get_many(std::span<const K>, std::span<found>) const && = delete;
  pair first() const && = delete;
  pair last() const && = delete;
  pair pop_first() const && = delete;
  pair pop_last() const && = delete;
  entries<K, T> all() const && = delete;
  entries<K, T> all_reversed() const && = delete;
  entries<K, T> range(std::optional<argument>, std::optional<argument>) const && = delete;
  entries<K, T> prefix(argument) const && = delete;

 private:
  friend class map<K, T>;
  explicit view(const silvics_map *map) : map_(map) {
    detail::checked(silvics_pin(map, &guard_));
  }
  pair end(decltype(silvics_first) &find) const {
    silvics_key key;
    silvics_value value;
    if (detail::checked(find(map_, &guard_, &key, &value)) != SILVICS_OK) return std::nullopt;
    return pair(std::in_place, keys::decode(key), *values::decode(value));
  }
  const silvics_map *map_;
  silvics_guard guard_;
};

}  // namespace silvics

#endif  // SILVICS_HPP
