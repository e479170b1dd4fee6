// Prints the parts of the library that the contract does not reach: sso_parts qr TEXT, sso_parts store FOLDER, or
// sso_parts json TEXT.
#include <clocale>
#include <iostream>

#include "json.hpp"
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
}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::string part = arguments[1];
    if (part == "json") return rewrite(arguments[2]);
    return part == "qr" ? draw(arguments[2]) : store(arguments[2]);
}
