#include "public_key.hpp"

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace sso {

namespace {
constexpr std::size_t coordinate = 32;  // bytes, of P-256 and Ed25519
constexpr int min_rsa_bits = 2048, max_rsa_bits = 8192;

// An element of DER.
std::string der(char tag, const std::string& content) {
    std::string length;
    if (content.size() < 0x80) {
        length = static_cast<char>(content.size());
    } else {
        for (std::size_t rest = content.size(); rest != 0; rest >>= 8) length.insert(0, 1, static_cast<char>(rest & 0xFF));
        length.insert(0, 1, static_cast<char>(0x80 | length.size()));
    }
    return tag + length + content;
}

std::string der_integer(const std::string& big_endian) {
    const auto first = big_endian.find_first_not_of('\0');
    std::string digits = first == std::string::npos ? std::string(1, '\0') : big_endian.substr(first);
    if (static_cast<unsigned char>(digits[0]) & 0x80) digits.insert(0, 1, '\0');
    return der('\x02', digits);
}

std::string bytes(std::initializer_list<int> values) {
    std::string text;
    for (const int value : values) text += static_cast<char>(value);
    return text;
}

// The identifiers of the algorithms in a SubjectPublicKeyInfo.
const std::string rsa = bytes({0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00});
const std::string p256 = bytes({0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                0xce, 0x3d, 0x03, 0x01, 0x07});
const std::string ed25519 = bytes({0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70});

std::shared_ptr<void> load(const std::string& kind, const std::string& key) {
    const std::string document = der('\x30', kind + der('\x03', std::string(1, '\0') + key));
    const auto* data = reinterpret_cast<const unsigned char*>(document.data());
    EVP_PKEY* loaded = d2i_PUBKEY(nullptr, &data, static_cast<long>(document.size()));
    return {loaded, [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); }};
}
}  // namespace

std::optional<PublicKey> PublicKey::from_jwk(const Json& jwk) {
    PublicKey key;
    const std::string& kind = jwk["kty"].text();
    const auto member = [&jwk](const char* name) { return base64url_decode(jwk[name].text()).value_or(""); };
    if (kind == "RSA") {
        key.algorithm_ = "RS256";
        key.key_ = load(rsa, der('\x30', der_integer(member("n")) + der_integer(member("e"))));
        const int bits = key.key_ ? EVP_PKEY_bits(static_cast<EVP_PKEY*>(key.key_.get())) : 0;
        if (bits < min_rsa_bits || bits > max_rsa_bits) return std::nullopt;
    } else if (kind == "EC" && jwk["crv"].text() == "P-256") {
        const std::string x = member("x"), y = member("y");
        if (x.size() != coordinate || y.size() != coordinate) return std::nullopt;
        key.algorithm_ = "ES256";
        key.key_ = load(p256, '\x04' + x + y);
    } else if (kind == "OKP" && jwk["crv"].text() == "Ed25519") {
        const std::string x = member("x");
        if (x.size() != coordinate) return std::nullopt;
        key.algorithm_ = "EdDSA";
        key.key_ = load(ed25519, x);
    }
    return key.key_ ? std::optional<PublicKey>(key) : std::nullopt;
}

bool PublicKey::verify(const std::string& text, const std::string& signature) const {
    std::string form = signature;
    if (algorithm_ == "ES256") {  // a JWS has both numbers one after the other, OpenSSL reads DER
        if (signature.size() != 2 * coordinate) return false;
        form = der('\x30', der_integer(signature.substr(0, coordinate)) + der_integer(signature.substr(coordinate)));
    }
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const EVP_MD* digest = algorithm_ == "EdDSA" ? nullptr : EVP_sha256();
    const auto data = [](const std::string& of) { return reinterpret_cast<const unsigned char*>(of.data()); };
    return context &&
           EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, static_cast<EVP_PKEY*>(key_.get())) == 1 &&
           EVP_DigestVerify(context.get(), data(form), form.size(), data(text), text.size()) == 1;
}

std::optional<std::string> base64url_decode(const std::string& text) {
    std::string decoded;
    unsigned buffer = 0;
    int bits = 0;
    for (const char c : text) {
        unsigned value = 0;
        if (c >= 'A' && c <= 'Z') value = static_cast<unsigned>(c - 'A');
        else if (c >= 'a' && c <= 'z') value = static_cast<unsigned>(c - 'a' + 26);
        else if (c >= '0' && c <= '9') value = static_cast<unsigned>(c - '0' + 52);
        else if (c == '-') value = 62;
        else if (c == '_') value = 63;
        else return std::nullopt;
        buffer = (buffer << 6 | value) & 0xFFFF;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            decoded += static_cast<char>(buffer >> bits & 0xFF);
        }
    }
    if (bits == 6 || (buffer & ((1u << bits) - 1)) != 0) return std::nullopt;
    return decoded;
}

}  // namespace sso
