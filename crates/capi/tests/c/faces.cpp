// The C++ interface.

#include <silvics.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

std::atomic<int> live;

// A value with padding is an object, since two equal ones may differ in their bytes.
struct padded {
  char letter;
  int number;
};
static_assert(!silvics::detail::word<padded> && silvics::detail::word<double> &&
              silvics::detail::word<int *>);

struct object {
  explicit object(int number) : number(number) { ++live; }
  object(const object &other) : number(other.number) { ++live; }
  object(object &&other) noexcept : number(other.number) { ++live; }
  ~object() { --live; }
  int number;
};

template <class Call>
silvics_status failure(Call call) {
  try {
    call();
  } catch (const silvics::error &error) {
    EXPECT(std::string(error.what()).size() > 10);
    return error.status();
  }
  return SILVICS_OK;
}

void numbers() {
  silvics::map<int, double> map;
  static_assert(std::ranges::input_range<silvics::entries<int, double>>);
  EXPECT(map.insert(-5, 0.5) && map.insert(3, 1.5) && !map.insert(3, 2.5));
  EXPECT(!map.try_insert(3, 9.0) && map.try_insert(0, 1.0));
  EXPECT(map.get(3) == 2.5 && !map.get(4) && map.contains(-5));
  std::vector<std::pair<int, double>> seen;
  for (const auto [key, value] : map.all()) seen.emplace_back(key, value);
  EXPECT((seen == std::vector<std::pair<int, double>>{{-5, 0.5}, {0, 1.0}, {3, 2.5}}));
  int last = 0;
  for (const auto [key, value] : map.all_reversed()) {
    last = key;
    break;
  }
  EXPECT(last == 3);
  std::size_t count = 0;
  for (const auto &entry : map.range(-5, 3)) count += entry.value > 0;
  EXPECT(count == 2);

  std::optional<double> expected = 9.0;
  EXPECT(!map.compare_exchange(3, expected, 4.0) && expected == 2.5);
  EXPECT(map.compare_exchange(3, expected, std::nullopt) && !map.contains(3));
  EXPECT(!map.compare_exchange(3, expected, 4.0) && !expected);

  const std::vector<int> keys{-5, 3, 0};
  std::vector<std::optional<double>> found(3);
  map.get_many(keys, found);
  EXPECT(found[0] == 0.5 && !found[1] && found[2] == 1.0);
  std::vector<int> many(300);
  std::vector<double> halves(300);
  for (int i = 0; i < 300; ++i) many[i] = i, halves[i] = i / 2.0;
  map.insert_many(many, halves);
  EXPECT(map.size() == 301 && map.get(299) == 149.5 && map.remove(299) && !map.remove(299));
  EXPECT(map.check() == 300 && map.bytes() > 0);
  const auto view = map.pin();
  EXPECT(view.first()->first == -5 && view.last()->second == 149.0);
  EXPECT(view.pop_last()->first == 298 && view.get(297) == 148.5 && !view.remove(298));
}

void objects() {
  {
    silvics::map<std::string, object> map;
    for (int i = 0; i < 1000; ++i) EXPECT(map.insert("key " + std::to_string(i), object(i)));
    EXPECT(!map.try_insert("key 7", object(70)) && !map.insert("key 7", object(71)));
    const auto view = map.pin();
    const object *seven = view.get("key 7");
    EXPECT(seven != nullptr && seven->number == 71 && view.get("absent") == nullptr);
    EXPECT(!view.replace("key 8", seven, object(9)) && view.replace("key 7", seven, object(72)));
    EXPECT(seven->number == 71);  // replaced, and still lent
    int sum = 0, backwards = 0;
    for (const auto &[key, value] : view.prefix("key 99")) sum += value.number;
    EXPECT(sum == 99 + 990 + 991 + 992 + 993 + 994 + 995 + 996 + 997 + 998 + 999);
    for (const auto entry : view.all_reversed()) backwards += entry.key.starts_with("key ");
    EXPECT(backwards == 1000);
    EXPECT(view.remove("key 8")->number == 8 && view.remove("key 8") == nullptr);
    EXPECT(view.first()->second.number == 0);
    EXPECT(view.insert("key 9", object(90))->number == 9 && view.insert("new", object(1)) == nullptr);
    EXPECT(view.try_insert("new", object(2))->number == 1);
    const std::vector<std::string> keys{"key 9", "absent", "new"};
    std::vector<const object *> found(3);
    view.get_many(keys, found);
    EXPECT(found[0]->number == 90 && found[1] == nullptr && found[2]->number == 1);
  }
  EXPECT(live == 0);
}

void failures() {
  EXPECT(failure([] { silvics::map<int, int> map({.structure = "rope"}); }) ==
         SILVICS_ERROR_STRUCTURE);
  silvics::map<int, int> tree({.structure = "edge-ext-lf"});
  EXPECT(tree.insert(1, 1));
  const auto view = tree.pin();
  EXPECT(failure([&] { (void)view.first(); }) == SILVICS_ERROR_UNSUPPORTED);

  silvics::budget budget(1 << 20);
  {
    silvics::map<std::uint64_t, object> map({.budget = &budget});
    const auto fill = [&] {
      for (std::uint64_t i = 0;; ++i) map.insert(i, object(1));
    };
    EXPECT(failure(fill) == SILVICS_ERROR_LIMIT);
    EXPECT(static_cast<std::size_t>(live) == map.size() && budget.bytes() == map.bytes());
    auto moved = std::move(map);
    EXPECT(moved.remove(0));
  }
  EXPECT(live == 0);
}

void threads() {
  silvics::map<std::uint64_t, std::shared_ptr<int>> map;
  const auto work = [&](std::uint64_t from) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      map.insert((from + i) % 100, std::make_shared<int>(static_cast<int>(i)));
      const auto view = map.pin();
      for (const auto &[key, value] : view.range(10, 12)) EXPECT(*value >= 0 && key < 12);
    }
  };
  std::thread one(work, 0), two(work, 50);
  one.join();
  two.join();
  EXPECT(map.size() == 100 && map.check() == 100);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT(map.remove(i));
  map.flush();
  EXPECT(map.size() == 0 && map.shrink() <= map.bytes() + (1 << 22));
}

}  // namespace

int main() {
  numbers();
  objects();
  failures();
  threads();
  std::puts("faces: ok");
}
