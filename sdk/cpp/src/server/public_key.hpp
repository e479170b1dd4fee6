// Public keys of the service, as they are in its key set.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "json.hpp"

namespace sso {

class PublicKey {
public:
    // Returns nothing for a key of a kind that the service does not sign with.
    static std::optional<PublicKey> from_jwk(const Json& jwk);

    const std::string& algorithm() const { return algorithm_; }  // the only one that the key is used with
    // Verifies a signature in the form of a JWS.
    bool verify(const std::string& text, const std::string& signature) const;

private:
    std::string algorithm_;
    std::shared_ptr<void> key_;
};

// Returns nothing if the text has other characters, or bits that stand for nothing.
std::optional<std::string> base64url_decode(const std::string& text);

}  // namespace sso
