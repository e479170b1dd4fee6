// Prints the parts of the library that the contract does not reach: sso_parts qr TEXT, sso_parts store FOLDER,
// sso_parts json TEXT, or, for players who sign out, sso_parts PART BASE_URL.
#include <clocale>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <thread>

#include "http.hpp"
#include "json.hpp"
#include "sso/game.hpp"
#include "sso/qr.hpp"
#include "sso/store.hpp"

namespace {
int draw(const std::string& text) {
    for (const auto& row : sso::qr_code(text)) {
        for (const bool dark : row) std::cout << (dark ? '1' : '0');
        std::cout << '\n';
    }
    return 0;
}

std::string read(const std::string& folder, const std::string& key, const std::string& name) {
    return sso::encrypted_store(sso::file_store(folder), sso::aes_gcm(key))->get(name).value_or("nothing");
}

// Stores a value, and reads it with the right key, with another one, and under another name.
int store(const std::string& folder) {
    const auto store = sso::encrypted_store(sso::file_store(folder), sso::aes_gcm("a key of the game"));
    if (!store->set("token", "long-token-1")) return 1;
    const auto raw = sso::file_store(folder)->get("token");
    if (!raw || !sso::file_store(folder)->set("guest_key", *raw)) return 1;
    std::cout << read(folder, "a key of the game", "token") << '\n' << read(folder, "another key", "token") << '\n'
              << read(folder, "a key of the game", "guest_key") << '\n' << read(folder, "a key of the game", "none") << '\n';
    return 0;
}

// Reads and writes a document with the locale of the environment.
int rewrite(const std::string& text) {
    if (!std::setlocale(LC_ALL, "")) return 1;
    const auto value = sso::Json::parse(text);
    std::cout << std::localeconv()->decimal_point << '\n' << (value ? value->str() : "malformed") << '\n';
    return 0;
}
class Memory : public sso::Store {
public:
    std::optional<std::string> get(const std::string& name) override {
        if (reading) reading();
        const auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
    }
    bool set(const std::string& name, const std::optional<std::string>& value) override {
        if (value) values[name] = *value;
        else values.erase(name);
        return true;
    }
    std::map<std::string, std::string> values{{"token", "short"}};
    std::function<void()> reading;
};

void print(const sso::Result<sso::Player>& player) {
    std::cout << (player ? "signed in" : sso::name_of(player.failure().reason)) << '\n';
}

// The service answers when it has seen something.
void ask(const std::string& base_url, const char* path) { sso::post(base_url + path, "{}", {}, 60, nullptr); }

// Signs out while a sign-in waits for its result.
int sign_out(const std::string& base_url) {
    auto store = std::make_unique<Memory>();
    Memory& stored = *store;
    sso::Game game(base_url, {}, std::move(store));
    std::thread leaving;
    sso::SignIn how;
    how.show_link = [&](const std::string&, const std::string&) { leaving = std::thread([&game] { game.sign_out(); }); };
    const auto player = game.sign_in(how);
    leaving.join();
    print(player);
    std::cout << stored.get("token").value_or("nothing") << '\n'
              << (game.may(10, "chat.write") ? "a player" : "no player") << '\n';
    return 0;
}

// A call gets its answer while a sign-out runs, which has begun to read the stored token.
int late_answer(const std::string& base_url, sso::Result<sso::Player> (*call)(sso::Game&)) {
    auto store = std::make_unique<Memory>();
    Memory& stored = *store;
    sso::Game game(base_url, {}, std::move(store));
    std::future<sso::Result<sso::Player>> running;
    bool has_begun = false;
    stored.reading = [&] {
        if (has_begun) return;
        has_begun = true;
        running = std::async(std::launch::async, call, std::ref(game));
        ask(base_url, "/answer_is_read");
    };
    game.sign_out();
    print(running.get());
    std::cout << stored.get("token").value_or("nothing") << '\n';
    return 0;
}

sso::Result<sso::Player> use_ticket(sso::Game& game) { return game.sign_in_with_ticket("steam", "1"); }

sso::Result<sso::Player> use_token(sso::Game& game) { return game.resume(); }

// The player signs out twice. The second time, the request of the first time still runs.
int sign_out_twice(const std::string& base_url) {
    sso::Game game(base_url, {}, std::make_unique<Memory>());
    std::thread first([&game] { game.sign_out(); });
    ask(base_url, "/logout_has_begun");
    game.sign_out();
    game.cancel();
    ask(base_url, "/signed_out_twice");
    first.join();
    return 0;
}
}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::string part = arguments[1];
    if (part == "json") return rewrite(arguments[2]);
    if (part == "sign_out") return sign_out(arguments[2]);
    if (part == "late_ticket") return late_answer(arguments[2], use_ticket);
    if (part == "late_resume") return late_answer(arguments[2], use_token);
    if (part == "sign_out_twice") return sign_out_twice(arguments[2]);
    return part == "qr" ? draw(arguments[2]) : store(arguments[2]);
}
