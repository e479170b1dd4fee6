#include <openssl/evp.h>

#include <memory>

#include "keys.hpp"
#include "sso/store.hpp"

namespace sso {

namespace {
constexpr int nonce_size = 12, tag_size = 16;
const std::string form = "sso1";  // of what is stored: the form, a nonce, a tag, and the encrypted value
const std::size_t head = form.size() + nonce_size + tag_size;

using Context = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(&text[0]); }
const unsigned char* bytes(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string digest_of(const std::string& key) {
    std::string digest(32, '\0');
    const std::string text = "sso store" + key;
    return EVP_Digest(text.data(), text.size(), bytes(digest), nullptr, EVP_sha256(), nullptr) == 1 ? digest : "";
}

// The name is authenticated, so that one value cannot take the place of another.
std::optional<std::string> encrypt(const std::string& key, const std::string& name, const std::string& value) {
    std::string nonce(nonce_size, '\0'), tag(tag_size, '\0'), out(value.size(), '\0');
    const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    int size = 0;
    if (!context || key.empty() || !random_bytes(bytes(nonce), nonce.size()) ||
        EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, bytes(key), bytes(nonce)) != 1 ||
        EVP_EncryptUpdate(context.get(), nullptr, &size, bytes(name), static_cast<int>(name.size())) != 1 ||
        EVP_EncryptUpdate(context.get(), bytes(out), &size, bytes(value), static_cast<int>(value.size())) != 1 ||
        EVP_EncryptFinal_ex(context.get(), bytes(out) + size, &size) != 1 ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_size, bytes(tag)) != 1) {
        return std::nullopt;
    }
    return form + nonce + tag + out;
}

std::optional<std::string> decrypt(const std::string& key, const std::string& name, const std::string& stored) {
    if (stored.size() < head || stored.compare(0, form.size(), form) != 0) return std::nullopt;
    const std::string nonce = stored.substr(form.size(), nonce_size);
    std::string tag = stored.substr(form.size() + nonce_size, tag_size);
    const std::string content = stored.substr(head);
    std::string out(content.size(), '\0');
    const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    int size = 0;
    if (!context || key.empty() ||
        EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, bytes(key), bytes(nonce)) != 1 ||
        EVP_DecryptUpdate(context.get(), nullptr, &size, bytes(name), static_cast<int>(name.size())) != 1 ||
        EVP_DecryptUpdate(context.get(), bytes(out), &size, bytes(content), static_cast<int>(content.size())) != 1 ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_size, bytes(tag)) != 1 ||
        EVP_DecryptFinal_ex(context.get(), bytes(out) + size, &size) != 1) {
        return std::nullopt;
    }
    return out;
}

class EncryptedStore : public Store {
public:
    EncryptedStore(std::unique_ptr<Store> store, Cipher cipher) : store_(std::move(store)), cipher_(std::move(cipher)) {}

    std::optional<std::string> get(const std::string& name) override {
        const auto stored = store_->get(name);
        return stored ? cipher_.decrypt(name, *stored).value_or("") : stored;
    }

    bool set(const std::string& name, const std::optional<std::string>& value) override {
        if (!value) return store_->set(name, std::nullopt);
        const auto encrypted = cipher_.encrypt(name, *value);
        return encrypted && store_->set(name, encrypted);
    }

private:
    std::unique_ptr<Store> store_;
    Cipher cipher_;
};
}  // namespace

Cipher aes_gcm(const std::string& key) {
    const std::string digest = digest_of(key);
    return {[digest](const std::string& name, const std::string& value) { return encrypt(digest, name, value); },
            [digest](const std::string& name, const std::string& value) { return decrypt(digest, name, value); }};
}

std::unique_ptr<Store> encrypted_store(std::unique_ptr<Store> store, Cipher cipher) {
    return std::make_unique<EncryptedStore>(std::move(store), std::move(cipher));
}

}  // namespace sso
