#include <openssl/evp.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>

#include "http.hpp"
#include "keys.hpp"
#include "public_key.hpp"
#include "sso/server.hpp"

namespace sso {

namespace {
using Keys = std::map<std::string, PublicKey>;  // by kid

const char* const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t max_jwt = 16 * 1024;
constexpr long request_s = 5;
constexpr std::int64_t max_age_s = 300;       // of the keys: a retired key is noticed by then
constexpr std::int64_t retry_s = 5;           // after a failure
constexpr std::int64_t unknown_pause_s = 10;  // so that JWTs with invented keys cause no load
constexpr std::int64_t never = -unknown_pause_s;
constexpr std::int64_t clock_step_s = 10;  // another thread may have read the clock so much later

// Whether so many seconds have passed, or the clock was set back.
bool has_passed(std::int64_t seconds, std::int64_t since, std::int64_t now) {
    return now - since >= seconds || since - now > clock_step_s;
}

std::string base64url(const unsigned char* data, std::size_t size) {
    std::string text = base64(data, size);
    text.erase(text.find_last_not_of('=') + 1);
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
}

std::string factor_claim(std::string_view factor) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(factor.data(), factor.size(), digest, &size, EVP_sha256(), nullptr) != 1) return "";
    return base64url(digest, size);
}

// An empty factor is that of no device.
bool has_factor(const Json& claims, std::string_view factor) {
    const std::string claim = factor.empty() ? "" : factor_claim(factor);
    return !claim.empty() && claims["fac"].text() == claim;
}

std::optional<Json> parse_part(const std::string& part) {
    const auto decoded = base64url_decode(part);
    const auto parsed = decoded ? Json::parse(*decoded) : std::nullopt;
    return parsed && parsed->is_object() ? parsed : std::nullopt;
}

// A JWT whose signature is not verified yet.
struct Parts {
    std::string algorithm, kid, text, claims, signature;
};

std::optional<Parts> split(const std::string& jwt) {
    const auto first = jwt.find('.'), last = jwt.rfind('.');
    if (jwt.size() > max_jwt || first == std::string::npos || first == last) return std::nullopt;
    const auto header = parse_part(jwt.substr(0, first));
    const std::string claims = jwt.substr(first + 1, last - first - 1), signature = jwt.substr(last + 1);
    if (!header || (claims + signature).find_first_not_of(alphabet) != std::string::npos) return std::nullopt;
    for (const char* name : {"crit", "zip", "b64"}) {
        if (header->has(name)) return std::nullopt;
    }
    if ((header->has("typ") && (*header)["typ"].text() != "JWT") || (*header)["kid"].text().empty()) return std::nullopt;
    return Parts{(*header)["alg"].text(), (*header)["kid"].text(), jwt.substr(0, last), claims,
                 base64url_decode(signature).value_or("")};
}
}  // namespace

const char* name_of(Refusal refusal) {
    switch (refusal) {
        case Refusal::malformed: return "malformed";
        case Refusal::signature: return "signature";
        case Refusal::unknown_key: return "unknown_key";
        case Refusal::issuer: return "issuer";
        case Refusal::expired: return "expired";
        case Refusal::factor: return "factor";
        case Refusal::old: return "old";
        case Refusal::unavailable: return "unavailable";
    }
    return "";
}

struct Verifier::State {
    std::string base_url, issuer;
    std::mutex keys_lock;  // held for moments
    std::shared_ptr<const Keys> keys;  // null until they were fetched
    std::int64_t fetched_at = 0;
    std::mutex fetch_lock;  // held during a request: only who needs the new keys waits for it
    std::int64_t failed_at = never, asked_for_unknown_at = never;

    std::shared_ptr<const Keys> current() {
        const std::lock_guard<std::mutex> lock(keys_lock);
        return keys;
    }

    bool is_stale(std::int64_t now) {
        const std::lock_guard<std::mutex> lock(keys_lock);
        return !keys || has_passed(max_age_s, fetched_at, now);
    }

    std::optional<PublicKey> known(const std::string& kid) {
        const auto set = current();
        if (!set) return std::nullopt;
        const auto found = set->find(kid);
        return found == set->end() ? std::nullopt : std::optional<PublicKey>(found->second);
    }

    Outcome<PublicKey, Refusal> find(const std::string& kid, std::int64_t now) {
        const bool was_fetched = is_stale(now) && refresh(now);
        if (const auto key = known(kid)) return *key;
        if (!current()) return Refusal::unavailable;
        if (!was_fetched) fetch_for_unknown(kid, now);
        if (const auto key = known(kid)) return *key;
        return Refusal::unknown_key;
    }

    // Returns whether the keys are new.
    bool refresh(std::int64_t now) {
        std::unique_lock<std::mutex> lock(fetch_lock, std::defer_lock);
        if (!current()) lock.lock();
        else if (!lock.try_lock()) return false;  // another thread fetches them; the old ones are good until then
        return is_stale(now) && has_passed(retry_s, failed_at, now) && fetch(now);
    }

    void fetch_for_unknown(const std::string& kid, std::int64_t now) {
        const std::lock_guard<std::mutex> lock(fetch_lock);
        if (known(kid) || !has_passed(unknown_pause_s, asked_for_unknown_at, now)) return;
        asked_for_unknown_at = now;
        fetch(now);
    }

    bool fetch(std::int64_t now) {
        Request request;
        request.method = "GET";
        request.url = base_url + "/proxy/oauth/keys";
        request.timeout_s = request_s;
        const Exchange exchange = send(request);
        auto fetched = std::make_shared<Keys>();
        for (const Json& jwk : exchange.answer.body["keys"].items()) {
            if (const auto key = PublicKey::from_jwk(jwk)) fetched->insert_or_assign(jwk["kid"].text(), *key);
        }
        if (exchange.broken != Broken::no || exchange.answer.status != 200 || fetched->empty()) {
            failed_at = now;
            return false;
        }
        const std::lock_guard<std::mutex> lock(keys_lock);
        keys = std::move(fetched);
        fetched_at = now;
        return true;
    }
};

Verifier::Verifier(std::string base_url, std::string issuer) : state_(std::make_unique<State>()) {
    state_->base_url = without_slash(std::move(base_url));
    state_->issuer = issuer.empty() ? state_->base_url : std::move(issuer);
}

Verifier::~Verifier() = default;

Outcome<User, Refusal> Verifier::verify(const std::string& jwt, std::optional<std::string_view> factor, std::int64_t now) {
    if (!now) now = std::time(nullptr);
    const auto parts = split(jwt);
    if (!parts) return Refusal::malformed;
    if (parts->algorithm != "RS256" && parts->algorithm != "ES256" && parts->algorithm != "EdDSA") return Refusal::signature;
    const auto key = state_->find(parts->kid, now);
    if (!key) return key.failure();
    if (parts->algorithm != key->algorithm() || !key->verify(parts->text, parts->signature)) return Refusal::signature;
    const Json claims = parse_part(parts->claims).value_or(Json());
    // The service signs other tokens with the same keys.
    if (claims["typ"].text() != "user_token" || claims["uid"].text().empty() || !claims["exp"].is_integer() ||
        (claims.has("ends") && !claims["ends"].is_integer())) {
        return Refusal::malformed;
    }
    if (claims["iss"].text() != state_->issuer) return Refusal::issuer;
    std::int64_t expires = claims["exp"].integer();
    if (claims.has("ends")) expires = std::min(expires, claims["ends"].integer());
    if (now >= expires) return Refusal::expired;
    if (factor && !has_factor(claims, *factor)) return Refusal::factor;
    return User{claims["uid"].text(), claims["nick"].text(), claims["auth"].text(), claims["app_id"].integer(), expires};
}

}  // namespace sso
