// Game login: show a link and wait until the player has signed in with a browser.
//
//     g++ -std=c++17 game_login.cpp -lcurl -lcrypto -o game_login
//     ./game_login http://localhost:8000
//     ./game_login http://localhost:8000 game.pem      requests signed with that RSA key
//
// Needs libcurl for HTTP and OpenSSL for signatures. A game would use its own JSON library and a thread.

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

const long kTimeoutSeconds = 45;  // longer than the 30 seconds for which the service holds a poll

struct LoginFailed : std::runtime_error { using std::runtime_error::runtime_error; };
struct Timeout : std::runtime_error { using std::runtime_error::runtime_error; };
struct Unavailable : std::runtime_error { using std::runtime_error::runtime_error; };

void append_utf8(std::string& out, unsigned long c) {
    if (c < 0x80) { out += char(c); return; }
    if (c < 0x800) { out += char(0xC0 | c >> 6); out += char(0x80 | (c & 63)); return; }
    if (c < 0x10000) { out += char(0xE0 | c >> 12); }
    else { out += char(0xF0 | c >> 18); out += char(0x80 | (c >> 12 & 63)); }
    out += char(0x80 | (c >> 6 & 63));
    out += char(0x80 | (c & 63));
}

// Returns a JSON string that starts at the quote `at`; moves `at` behind the closing quote.
std::string json_string(const std::string& json, size_t& at) {
    std::string out;
    for (++at; at < json.size() && json[at] != '"'; ++at) {
        if (json[at] != '\\') { out += json[at]; continue; }
        char c = ++at < json.size() ? json[at] : '\\';
        if (c != 'u') { out += c == 'n' ? '\n' : c == 't' ? '\t' : c; continue; }
        unsigned long code = std::strtoul(json.substr(at + 1, 4).c_str(), nullptr, 16);
        at += 4;
        if (code >= 0xD800 && code < 0xDC00 && json.compare(at + 1, 2, "\\u") == 0) {
            code = 0x10000 + ((code - 0xD800) << 10)
                 + (std::strtoul(json.substr(at + 3, 4).c_str(), nullptr, 16) - 0xDC00);
            at += 6;
        }
        append_utf8(out, code);
    }
    ++at;
    return out;
}

// Returns a field of the outermost object: a string without quotes, any other value as it is, or "" if it is missing.
std::string field(const std::string& json, const std::string& name) {
    int depth = 0;
    for (size_t at = 0; at < json.size();) {
        if (json[at] != '"') {
            depth += json[at] == '{' || json[at] == '[';
            depth -= json[at] == '}' || json[at] == ']';
            ++at;
            continue;
        }
        std::string found = json_string(json, at);
        at = json.find_first_not_of(" \t\r\n", at);
        if (at == std::string::npos) break;
        if (depth != 1 || json[at] != ':' || found != name) continue;
        at = json.find_first_not_of(" \t\r\n", at + 1);
        if (at == std::string::npos) break;
        return json[at] == '"' ? json_string(json, at) : json.substr(at, json.find_first_of(",}", at) - at);
    }
    return "";
}

std::string base64(const std::vector<unsigned char>& raw) {
    std::string out(4 * ((raw.size() + 2) / 3) + 1, '\0');
    out.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(&out[0]), raw.data(), int(raw.size())));
    return out;
}

class Key {
public:
    explicit Key(const char* file) {
        FILE* pem = std::fopen(file, "r");
        if (pem) { key_ = PEM_read_PrivateKey(pem, nullptr, nullptr, nullptr); std::fclose(pem); }
        if (!key_) throw LoginFailed(std::string("no private key in ") + file);
    }
    ~Key() { EVP_PKEY_free(key_); }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;

    std::string public_key() const {  // base64 of DER
        unsigned char* der = nullptr;
        int length = i2d_PUBKEY(key_, &der);
        std::vector<unsigned char> raw(der, der + length);
        OPENSSL_free(der);
        return base64(raw);
    }

    std::string sign(const std::string& body) const {  // RSA, PKCS#1 v1.5, SHA-256
        std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
        auto bytes = reinterpret_cast<const unsigned char*>(body.data());
        size_t length = 0;
        EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_);
        EVP_DigestSign(context.get(), nullptr, &length, bytes, body.size());
        std::vector<unsigned char> signature(length);
        if (EVP_DigestSign(context.get(), signature.data(), &length, bytes, body.size()) != 1)
            throw LoginFailed("cannot sign");
        signature.resize(length);
        return base64(signature);
    }

private:
    EVP_PKEY* key_ = nullptr;
};

class GameLogin {
public:
    GameLogin(std::string base_url, const Key* key) : base_url_(std::move(base_url)), key_(key) {
        while (!base_url_.empty() && base_url_.back() == '/') base_url_.pop_back();
    }

    std::string link, match;

    // Registers a session: sets the link for the browser and the match code that the game must show.
    void start() {
        std::string body = R"({"factor": "this device")";
        if (key_) body += R"(, "public_key": ")" + key_->public_key() + '"';
        std::string answer = post("getGsid", body + "}");
        if (field(answer, "status") != "OK") throw LoginFailed(field(answer, "error"));
        gsid_ = field(answer, "gsid");
        match = field(answer, "match");
        link = base_url_ + "/?gsid=" + gsid_;
    }

    // Polls until the player has signed in. Returns the login data as JSON.
    std::string wait() {
        for (;;) {
            std::string answer;
            try {
                answer = post("getGsidResult", R"({"gsid": ")" + gsid_ + "\"}");
            } catch (const Timeout&) {
                continue;  // poll again at once
            } catch (const Unavailable&) {
                std::this_thread::sleep_for(std::chrono::seconds(1));  // it restarts; the session survives
                continue;
            }
            std::string status = field(answer, "status");
            if (status == "OK") return answer;
            if (status == "CANCELLED") throw LoginFailed("the sign-in was cancelled");
            if (status != "RETRY") throw LoginFailed(field(answer, "error"));
            // Wait even if it is 0: a client that polls too early may be blocked.
            std::this_thread::sleep_for(std::chrono::seconds(std::atoi(field(answer, "delay").c_str())));
        }
    }

    // Ends the session with "Success", or with "Error", which makes the link unusable.
    void close(const std::string& status) {
        post("closeGsid", R"({"gsid": ")" + gsid_ + R"(", "status": ")" + status + "\"}");
    }

private:
    std::string post(const std::string& name, const std::string& body) {
        std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
        std::string answer, url = base_url_ + "/proxy/api/gameSession/" + name;
        curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
        if (!gsid_.empty() && key_)  // covers exactly these bytes
            headers = curl_slist_append(headers, ("Request-Sign: " + key_->sign(body)).c_str());
        else if (!gsid_.empty() && !evidence_.empty())
            url += "?" + evidence_;
        curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
        curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, long(body.size()));
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
        curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, kTimeoutSeconds);
        curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &append);
        curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
        curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &header);
        curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, this);
        CURLcode done = curl_easy_perform(curl.get());
        curl_slist_free_all(headers);
        long status = 0;
        curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
        if (done == CURLE_OPERATION_TIMEDOUT) throw Timeout("no response in time");
        if (done != CURLE_OK) throw Unavailable(curl_easy_strerror(done));
        if (status == 429 || (status >= 502 && status <= 504))  // 429: too many requests
            throw Unavailable("the service is busy or not available");
        return answer;
    }

    static size_t append(char* data, size_t size, size_t count, void* to) {
        static_cast<std::string*>(to)->append(data, size * count);
        return size * count;
    }

    // The header Location of getGsid has a secret that authenticates later requests.
    // The client's address does as well while it stays the same.
    static size_t header(char* data, size_t size, size_t count, void* self) {
        std::string line(data, size * count);
        size_t query = line.find('?');
        if ((line.compare(0, 9, "Location:") == 0 || line.compare(0, 9, "location:") == 0) && query != std::string::npos)
            static_cast<GameLogin*>(self)->evidence_ = line.substr(query + 1, line.find_last_not_of("\r\n") - query);
        return size * count;
    }

    std::string base_url_, gsid_, evidence_;
    const Key* key_;
};

int main(int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') { std::cerr << "usage: game_login BASE_URL [PRIVATE_KEY_FILE]\n"; return 2; }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    try {
        std::unique_ptr<Key> key(argc > 2 ? new Key(argv[2]) : nullptr);
        GameLogin login(argv[1], key.get());
        login.start();
        std::cout << "Sign in at    " << login.link << "\nMatch code    " << login.match << std::endl;
        std::string player = login.wait();
        login.close("Success");
        std::cout << "Hello, " << field(player, "nick") << " (user " << field(player, "user_id") << ")" << std::endl;
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "login failed: " << error.what() << std::endl;
        return 1;
    }
}
