#include "session.hpp"

#include <chrono>

namespace sso {

namespace {
const std::string path = "/proxy/api/gameSession/";
constexpr long request_s = 15;
constexpr long poll_s = 45;  // longer than the 30 seconds for which the service holds a poll
constexpr std::chrono::seconds max_outage(60);  // a session outlives a restart of the service

const Failure gave_up{Reason::cancelled, "the player gave up", "", {}};
}  // namespace

Result<Session> Session::open(const std::string& base_url, JsonWriter fields, const Headers& headers, bool sign,
                              const std::atomic<bool>& cancelled) {
    Session session;
    session.base_url_ = base_url;
    if (sign) {
        session.key_ = Key::new_session_key();
        if (!session.key_) return Failure{Reason::invalid, "no key could be made", "", {}};
        fields.add("public_key", session.key_->public_key());
    }
    const Exchange exchange = post(base_url + path + "getGsid", fields.str(), headers, request_s, &cancelled);
    const Json& body = exchange.answer.body;
    if (exchange.broken != Broken::no || body["status"].text() != "OK") return failure_of(exchange);
    session.gsid_ = body["gsid"].text();
    session.words_ = body["match"].text();
    const auto location = exchange.answer.headers.find("location");
    if (location != exchange.answer.headers.end()) {
        const auto query = location->second.find('?');
        if (query != std::string::npos) session.proof_ = location->second.substr(query);
    }
    return session;
}

std::string Session::socket_url() const { return base_url_ + "/ws/gameSession/refresh/" + gsid_ + proof_; }

Result<Json> Session::result(const std::atomic<bool>& cancelled) const {
    using clock = std::chrono::steady_clock;
    std::optional<clock::time_point> outage_since;
    while (true) {
        const Exchange exchange = send("getGsidResult", {}, poll_s, &cancelled);
        double delay = 0;
        if (exchange.broken == Broken::lost || (exchange.broken == Broken::no && is_outage(exchange.answer))) {
            if (!outage_since) outage_since = clock::now();
            if (clock::now() - *outage_since > max_outage) return failure_of(exchange);
            delay = static_cast<double>(retry_after_s(exchange.answer));
        } else if (exchange.broken != Broken::no) {
            return failure_of(exchange);
        } else {
            outage_since.reset();
            const std::string status = exchange.answer.body["status"].text();
            if (status == "OK") return exchange.answer.body;
            if (status == "RETRY") delay = exchange.answer.body["delay"].number();
            else if (status != "CANCELLED") return failure_of(exchange);
        }
        if (!wait(delay, cancelled)) return gave_up;
    }
}

void Session::close(const char* status) const { send("closeGsid", JsonWriter().add("status", status), 3, nullptr); }

Exchange Session::send(const char* name, JsonWriter fields, long timeout_s, const std::atomic<bool>* cancelled) const {
    const std::string body = fields.add("gsid", gsid_).str();
    const std::string url = base_url_ + path + name;
    if (key_) return post(url, body, {"Request-Sign: " + key_->sign(body)}, timeout_s, cancelled);
    return post(url + proof_, body, {}, timeout_s, cancelled);
}

}  // namespace sso
