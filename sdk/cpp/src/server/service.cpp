#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include "change.hpp"
#include "event_stream.hpp"
#include "http.hpp"

namespace sso {

namespace {
using Clock = std::chrono::steady_clock;

constexpr std::size_t max_questions = 100;  // in one request
constexpr int max_tries = 3;
constexpr double max_pause_s = 30;
constexpr long request_s = 15;
constexpr long max_silence_s = 45;  // of a stream, whose heartbeats come every 15 seconds
constexpr std::chrono::seconds renew_before(30);

std::string escaped(const std::string& text) {
    const char* const digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_') {
            out += c;
        } else {
            const auto code = static_cast<unsigned char>(c);
            (out += '%') += digits[code >> 4];
            out += digits[code & 15];
        }
    }
    return out;
}

// What a broken exchange, or an answer without what was asked for, means.
Trouble trouble_of(const Exchange& exchange) {
    const long status = exchange.answer.status;
    const Json& error = exchange.answer.body["error"];
    const std::string message = error.is_text() ? error.text() : "status " + std::to_string(status);
    if (exchange.broken == Broken::cancelled) return {Problem::stopped, "stopped"};
    if (exchange.broken != Broken::no) return {Problem::unavailable, exchange.error};
    if (status == 401 || status == 403) return {Problem::refused, message};
    if (status == 429 || status >= 500) return {Problem::unavailable, message};
    if (status >= 400 && exchange.answer.body.is_object()) return {Problem::invalid, message};
    return {Problem::not_a_service, "this is no answer of a sign-on service: " + message};
}

// How long to wait before the next try; nothing if another try is of no use.
std::optional<double> pause_after(const Exchange& exchange, double usual_s) {
    if (exchange.broken != Broken::no || is_event_stream(exchange.answer)) return usual_s;
    if (!is_outage(exchange.answer)) return std::nullopt;
    return exchange.answer.headers.count("retry-after") ? static_cast<double>(retry_after_s(exchange.answer)) : usual_s;
}

std::string evaluation(const Question& question) {
    const std::string application_id = std::to_string(question.application_id);
    return JsonWriter()
        .add_raw("subject", JsonWriter().add("type", "user").add("id", question.user_id).str())
        .add_raw("action", JsonWriter().add("name", question.rule).str())
        .add_raw("resource", JsonWriter().add("type", "application").add("id", application_id).str())
        .str();
}

// Adds the answers to these questions. Returns false if it is no list of as many decisions.
bool add_answers(const Exchange& exchange, std::size_t count, std::vector<bool>& answers) {
    const auto& decisions = exchange.answer.body["evaluations"].items();
    if (exchange.broken != Broken::no || exchange.answer.status != 200 || decisions.size() != count) return false;
    for (const Json& item : decisions) {
        if (item["decision"].kind() != Json::Kind::boolean) return false;
        answers.push_back(item["decision"].is_true());
    }
    return true;
}
}  // namespace

const char* name_of(Problem problem) {
    switch (problem) {
        case Problem::refused: return "refused";
        case Problem::invalid: return "invalid";
        case Problem::unavailable: return "unavailable";
        case Problem::not_a_service: return "not_a_service";
        case Problem::stopped: return "stopped";
    }
    return "";
}

// An answer, or the failure to get a token for the request.
struct Asked {
    Exchange exchange;
    bool had_token;
};

struct Service::State {
    std::string base_url, client_id, client_secret;
    std::atomic<bool> stopped{false};
    Connections connections;
    std::mutex token_lock;  // held while a token is fetched, so that it is fetched once
    std::string token;
    Clock::time_point token_ends;
    std::atomic<int> failures{0};     // to fetch a token
    std::optional<Exchange> failure;  // of the last fetch, if it has failed

    // Returns the exchange that has failed, if it does.
    Outcome<std::string, Exchange> valid_token() {
        const int before = failures;
        const std::lock_guard<std::mutex> lock(token_lock);
        if (!token.empty() && Clock::now() + renew_before < token_ends) return token;
        // The fetch that this call has waited for has failed. Another one for each that waits would take too long.
        if (failure && failures != before) return *failure;
        auto fetched = fetch_token();
        failure.reset();
        if (!fetched) {
            failure = fetched.failure();
            ++failures;
        }
        return fetched;
    }

    Outcome<std::string, Exchange> fetch_token() {
        Request request;
        request.url = base_url + "/proxy/oauth/token";
        request.content_type = "application/x-www-form-urlencoded";
        request.body =
            "grant_type=client_credentials&client_id=" + escaped(client_id) + "&client_secret=" + escaped(client_secret);
        request.timeout_s = request_s;
        request.cancelled = &stopped;
        const Exchange exchange = connections.send(request);
        const Json& body = exchange.answer.body;
        if (exchange.broken != Broken::no || exchange.answer.status != 200 || body["access_token"].text().empty()) {
            return exchange;
        }
        token = body["access_token"].text();
        token_ends = Clock::now() + std::chrono::seconds(body["expires_in"].integer());
        return token;
    }

    void forget(const std::string& refused) {
        const std::lock_guard<std::mutex> lock(token_lock);
        if (token == refused) token.clear();
    }

    // Sends a request with the token, and once more with a new one if the service no longer accepts it.
    Asked send_with_token(Request request, bool keep_connection) {
        request.cancelled = &stopped;
        for (int attempt = 0;; ++attempt) {
            std::string used;
            if (!client_id.empty()) {
                const auto current = valid_token();
                if (!current) return {current.failure(), false};
                used = *current;
                request.headers.push_back("Authorization: Bearer " + used);
            }
            const Exchange exchange = keep_connection ? connections.send(request) : send(request);
            const bool is_old_token = exchange.broken == Broken::no && exchange.answer.status == 401 && !used.empty();
            if (!is_old_token || attempt > 0) return {exchange, true};
            forget(used);
            request.headers.pop_back();
        }
    }
};

Service::Service(std::string base_url, std::string client_id, std::string client_secret)
    : state_(std::make_unique<State>()) {
    state_->base_url = without_slash(std::move(base_url));
    state_->client_id = std::move(client_id);
    state_->client_secret = std::move(client_secret);
}

Service::~Service() = default;

void Service::stop() { state_->stopped = true; }

Outcome<std::vector<bool>, Trouble> Service::check(const std::vector<Question>& questions) {
    std::vector<bool> answers;
    for (int tries = 1; answers.size() < questions.size();) {
        const std::size_t begin = answers.size(), end = std::min(questions.size(), begin + max_questions);
        std::string list;
        for (std::size_t at = begin; at < end; ++at) list += (at == begin ? "" : ", ") + evaluation(questions[at]);
        Request request;
        request.url = state_->base_url + "/access/v1/evaluations";
        request.body = JsonWriter().add_raw("evaluations", "[" + list + "]").str();
        request.timeout_s = request_s;
        const Exchange exchange = state_->send_with_token(request, true).exchange;
        if (add_answers(exchange, end - begin, answers)) {
            tries = 1;
            continue;
        }
        const Trouble trouble = trouble_of(exchange);
        const auto pause_s = pause_after(exchange, 0.5);
        const bool is_final = trouble.problem != Problem::unavailable || !pause_s || *pause_s > max_pause_s;
        if (is_final || tries++ == max_tries) return trouble;
        if (!wait(*pause_s, state_->stopped)) return Trouble{Problem::stopped, "stopped"};
    }
    return answers;
}

Outcome<Done, Trouble> Service::follow(const std::string& after, const std::function<bool(const Change&)>& handle) {
    std::string cursor = after;
    bool is_wanted = true;
    double usual_pause_s = 1;
    while (!state_->stopped) {
        EventStream stream([&](const std::string& id, const std::string& data) {
            const auto event = Json::parse(data);
            is_wanted = !event || handle(change_of(*event, data));
            if (!id.empty()) cursor = id;
            return is_wanted;
        });
        Request request;
        request.method = "GET";
        request.url = state_->base_url + "/api/admin/changes" + (cursor.empty() ? "" : "?after=" + escaped(cursor));
        request.headers = {"Accept: text/event-stream"};
        request.max_silence_s = max_silence_s;
        request.on_piece = [&](const char* data, std::size_t size) {
            usual_pause_s = 1;  // also after a heartbeat: the service is there
            return stream.add(data, size);
        };
        const auto [exchange, had_token] = state_->send_with_token(request, false);
        if (!is_wanted) return Done{};
        if (stream.is_too_large()) return Trouble{Problem::not_a_service, "an event is too large"};
        const bool is_refused = had_token && exchange.broken == Broken::no && exchange.answer.status == 400;
        if (is_refused && !cursor.empty()) {  // changes were deleted
            cursor.clear();
            if (!handle(Change{"", "reset", "", 0, ""})) return Done{};
            continue;
        }
        const auto pause_s = pause_after(exchange, usual_pause_s);
        if (!pause_s) return trouble_of(exchange);
        if (!wait(*pause_s, state_->stopped)) break;
        usual_pause_s = std::min(2 * usual_pause_s, max_pause_s);
    }
    return Trouble{Problem::stopped, "stopped"};
}

}  // namespace sso
