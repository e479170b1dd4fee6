#include "keys.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <vector>

namespace sso {

namespace {
EVP_PKEY* pkey(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

EVP_PKEY* generate(int kind) {
    const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(EVP_PKEY_CTX_new_id(kind, nullptr),
                                                                         EVP_PKEY_CTX_free);
    EVP_PKEY* key = nullptr;
    if (!context || EVP_PKEY_keygen_init(context.get()) != 1) return nullptr;
    if (kind == EVP_PKEY_RSA && EVP_PKEY_CTX_set_rsa_keygen_bits(context.get(), 2048) != 1) return nullptr;
    return EVP_PKEY_keygen(context.get(), &key) == 1 ? key : nullptr;
}
}  // namespace

Key::Key(void* key) : key_(key, [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); }) {}

std::optional<Key> Key::new_session_key() {
    EVP_PKEY* key = generate(EVP_PKEY_RSA);
    return key ? std::optional<Key>(Key(key)) : std::nullopt;
}

std::optional<Key> Key::new_guest_key() {
    EVP_PKEY* key = generate(EVP_PKEY_ED25519);
    return key ? std::optional<Key>(Key(key)) : std::nullopt;
}

std::optional<Key> Key::from_pem(const std::string& pem) {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
    EVP_PKEY* key = bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr) : nullptr;
    return key ? std::optional<Key>(Key(key)) : std::nullopt;
}

std::string Key::pem() const {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
    if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), pkey(key_), nullptr, nullptr, 0, nullptr, nullptr) != 1) return "";
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}

std::string Key::public_key() const {
    unsigned char* der = nullptr;
    const int size = i2d_PUBKEY(pkey(key_), &der);
    if (size <= 0) return "";
    std::string text = base64(der, static_cast<std::size_t>(size));
    OPENSSL_free(der);
    return text;
}

std::string Key::sign(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const EVP_MD* digest = EVP_PKEY_base_id(pkey(key_)) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());
    std::size_t size = 0;
    if (!context || EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, pkey(key_)) != 1 ||
        EVP_DigestSign(context.get(), nullptr, &size, data, text.size()) != 1) {
        return "";
    }
    std::vector<unsigned char> signature(size);
    if (EVP_DigestSign(context.get(), signature.data(), &size, data, text.size()) != 1) return "";
    return base64(signature.data(), size);
}

std::string base64(const unsigned char* data, std::size_t size) {
    std::string text(4 * ((size + 2) / 3) + 1, '\0');
    const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(&text[0]), data, static_cast<int>(size));
    text.resize(static_cast<std::size_t>(length));
    return text;
}

bool random_bytes(unsigned char* data, std::size_t size) { return RAND_bytes(data, static_cast<int>(size)) == 1; }

std::string new_nonce() {
    unsigned char data[24];
    if (!random_bytes(data, sizeof data)) return "";
    std::string text = base64(data, sizeof data);
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
}

}  // namespace sso
