#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "change.hpp"

namespace sso {

namespace {
constexpr std::int64_t tolerance_s = 300;
constexpr std::size_t max_digits = 12, max_body = 1 << 20;

std::string hmac_sha256(const std::string& secret, const std::string& text) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());
    if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), data, text.size(), digest, &size)) return "";
    std::string hex;
    for (unsigned at = 0; at < size; ++at) {
        hex += "0123456789abcdef"[digest[at] >> 4];
        hex += "0123456789abcdef"[digest[at] & 15];
    }
    return hex;
}

// The value of a field in "t=…,v1=…".
std::optional<std::string> field(const std::string& header, const std::string& name) {
    for (std::size_t begin = 0; begin < header.size();) {
        const auto end = std::min(header.find(',', begin), header.size());
        const auto item = header.substr(begin, end - begin);
        if (item.compare(0, name.size() + 1, name + "=") == 0) return item.substr(name.size() + 1);
        begin = end + 1;
    }
    return std::nullopt;
}
}  // namespace

Outcome<Change, Refusal> verify_webhook(const std::string& signature, const std::string& body, const std::string& secret,
                                        std::int64_t now) {
    const std::string time = field(signature, "t").value_or("");
    const auto found = field(signature, "v1");
    if (!found || time.empty() || time.size() > max_digits || time.find_first_not_of("0123456789") != std::string::npos ||
        body.size() > max_body) {
        return Refusal::malformed;
    }
    const std::string expected = hmac_sha256(secret, time + "." + body);
    if (secret.empty() || expected.size() != found->size() ||
        CRYPTO_memcmp(expected.data(), found->data(), expected.size()) != 0) {
        return Refusal::signature;
    }
    const std::int64_t sent = std::strtoll(time.c_str(), nullptr, 10);
    if (std::llabs((now ? now : std::time(nullptr)) - sent) > tolerance_s) return Refusal::old;
    const auto event = Json::parse(body);
    if (!event || !(*event)["id"].is_text()) return Refusal::malformed;
    return change_of(*event, body);
}

}  // namespace sso
