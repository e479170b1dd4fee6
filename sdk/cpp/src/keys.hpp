// Keys of a game.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace sso {

class Key {
public:
    static std::optional<Key> new_session_key();  // RSA, for one session
    static std::optional<Key> new_guest_key();    // Ed25519, of a device
    static std::optional<Key> from_pem(const std::string& pem);

    std::string pem() const;
    std::string public_key() const;                    // base64 of DER
    std::string sign(const std::string& text) const;  // base64

private:
    explicit Key(void* key);
    std::shared_ptr<void> key_;
};

std::string base64(const unsigned char* data, std::size_t size);
std::string new_nonce();
bool random_bytes(unsigned char* data, std::size_t size);

}  // namespace sso
