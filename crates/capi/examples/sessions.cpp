// Sessions of users: strings to objects that the map owns, a scan by prefix, and an expiry.
//
//     c++ -std=c++20 sessions.cpp $(pkg-config --cflags --libs silvics)

#include <silvics.hpp>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

struct session {
  std::string user;
  int hits;
};

int main() {
  silvics::map<std::string, session> sessions;
  const auto log_in = [&](const std::string &country) {
    for (int number = 0; number < 1000; ++number) {
      const auto name = country + "/" + std::to_string(number);
      sessions.insert(name, session{name, number % 10});
    }
  };
  std::thread one(log_in, "de"), two(log_in, "fr");
  one.join();
  two.join();

  std::size_t idle = 0;
  {
    const auto view = sessions.pin();  // all that it lends is valid until it ends
    std::vector<std::string> gone;
    for (const auto [name, user] : view.prefix("fr/")) {
      if (user.hits == 0) gone.emplace_back(name);
    }
    for (const auto &name : gone) {
      const session *removed = view.remove(name);
      if (removed != nullptr && removed->user == name) ++idle;  // still readable
    }
  }
  sessions.flush();
  std::cout << sessions.size() << " sessions, " << idle << " were idle, " << sessions.bytes()
            << " bytes\n";
  return sessions.size() == 1900 && idle == 100 && sessions.check() == 1900 ? 0 : 1;
}
