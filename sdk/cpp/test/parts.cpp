// Prints the parts of the library that the contract does not reach: sso_parts qr TEXT, sso_parts store FOLDER,
// sso_parts json TEXT, or sso_parts sign_out BASE_URL.
#include <clocale>
#include <iostream>
#include <map>
#include <thread>

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
        const auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
    }
    bool set(const std::string& name, const std::optional<std::string>& value) override {
        if (value) values[name] = *value;
        else values.erase(name);
        return true;
    }
    std::map<std::string, std::string> values{{"token", "short"}};
};

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
    std::cout << (player ? "signed in" : sso::name_of(player.failure().reason)) << '\n'
              << stored.get("token").value_or("nothing") << '\n'
              << (game.may(10, "chat.write") ? "a player" : "no player") << '\n';
    return 0;
}
}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::string part = arguments[1];
    if (part == "json") return rewrite(arguments[2]);
    if (part == "sign_out") return sign_out(arguments[2]);
    return part == "qr" ? draw(arguments[2]) : store(arguments[2]);
}
