// Where a game keeps its token and its guest key.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sso {

class Store {
public:
    virtual ~Store() = default;
    // Returns nothing if nothing is stored, and an empty text if what is stored cannot be read.
    virtual std::optional<std::string> get(const std::string& name) = 0;
    // Returns false if the value cannot be stored. No value removes what is stored.
    virtual bool set(const std::string& name, const std::optional<std::string>& value) = 0;
};

// Keeps values in files that only the user of the system can read. The name of the folder is UTF-8, on Windows too.
std::unique_ptr<Store> file_store(const std::string& folder);

// Encrypts values, for example with the system's own store of keys. Both return nothing if they fail.
struct Cipher {
    std::function<std::optional<std::string>(const std::string& name, const std::string& value)> encrypt, decrypt;
};

// AES-256-GCM with a key of the game, of any length: 32 random bytes are good, a password is not.
Cipher aes_gcm(const std::string& key);

// Encrypts what another store keeps. A value that was encrypted otherwise cannot be read; it is not overwritten.
std::unique_ptr<Store> encrypted_store(std::unique_ptr<Store> store, Cipher cipher);

}  // namespace sso
