#include "http.hpp"

#include "trust.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace sso {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::size_t max_answer = 1 << 20;
constexpr long min_pause_s = 1, max_pause_s = 60;

struct Received {
    CURL* curl;
    const Request& request;
    std::string content;
    Answer answer;  // without its body
    Clock::time_point last_piece = Clock::now();
    int sent = 0;
};

std::size_t on_content(char* data, std::size_t size, std::size_t count, void* target) {
    auto& received = *static_cast<Received*>(target);
    curl_easy_getinfo(received.curl, CURLINFO_RESPONSE_CODE, &received.answer.status);
    received.last_piece = Clock::now();
    if (received.request.on_piece && is_event_stream(received.answer)) return received.request.on_piece(data, size * count) ? size * count : 0;
    if (received.content.size() + size * count > max_answer) return 0;
    received.content.append(data, size * count);
    return size * count;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* target) {
    const std::string line(data, size * count);
    const auto colon = line.find(':');
    if (colon != std::string::npos) {
        std::string name = line.substr(0, colon);
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
        const auto begin = line.find_first_not_of(" \t", colon + 1);
        const auto end = line.find_last_not_of(" \t\r\n");
        const bool is_empty = begin == std::string::npos || end < begin;
        static_cast<Received*>(target)->answer.headers[name] = is_empty ? "" : line.substr(begin, end - begin + 1);
    }
    return size * count;
}

// libcurl calls it about once a second while nothing happens.
int on_progress(void* target, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto& received = *static_cast<const Received*>(target);
    const Request& request = received.request;
    const bool is_silent =
        request.max_silence_s && Clock::now() - received.last_piece > std::chrono::seconds(request.max_silence_s);
    return is_silent || (request.cancelled && request.cancelled->load()) ? 1 : 0;
}

#if LIBCURL_VERSION_NUM >= 0x075000
// libcurl repeats a request by itself if a kept connection was closed meanwhile. Who sends the request counts its tries.
int on_request(void* target, char*, char*, int, int) {
    return ++static_cast<Received*>(target)->sent == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}
#endif

std::string origin_of(const std::string& url) {
    const auto path = url.find('/', url.find("://") + 3);
    return url.substr(0, path);
}
}  // namespace

namespace {
Exchange perform(CURL* curl, const Request& request) {
    Exchange exchange;
    curl_slist* list = curl_slist_append(nullptr, ("Content-Type: " + request.content_type).c_str());
    for (const auto& header : request.headers) list = curl_slist_append(list, header.c_str());
    list = curl_slist_append(list, "Expect:");
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> owned(list, curl_slist_free_all);
    Received received{curl, request, {}, {}};
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    if (request.method == "POST") {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, request.timeout_s);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 15L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_content);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &received);
    use_trusted_certificates(curl);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &received);
#if LIBCURL_VERSION_NUM >= 0x075000
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, &received);
#else
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
#endif
    const CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        exchange.broken = request.cancelled && request.cancelled->load() ? Broken::cancelled : Broken::lost;
        exchange.error = curl_easy_strerror(code);
        return exchange;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &exchange.answer.status);
    exchange.answer.headers = std::move(received.answer.headers);
    exchange.answer.body = Json::parse(received.content).value_or(Json());
    return exchange;
}

CURL* new_handle() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    return curl_easy_init();
}
}  // namespace

Exchange send(const Request& request) {
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(new_handle(), curl_easy_cleanup);
    return perform(curl.get(), request);
}

Connections::~Connections() {
    for (void* curl : idle_) curl_easy_cleanup(curl);
}

Exchange Connections::send(const Request& request) {
    CURL* curl = nullptr;
    {
        const std::lock_guard<std::mutex> lock(lock_);
        if (!idle_.empty()) {
            curl = idle_.back();
            idle_.pop_back();
        }
    }
    if (!curl) curl = new_handle();
    Exchange exchange = perform(curl, request);
    curl_easy_reset(curl);  // its connection stays open
    const std::lock_guard<std::mutex> lock(lock_);
    idle_.push_back(curl);
    return exchange;
}

Exchange post(const std::string& url, const std::string& body, const Headers& headers, long timeout_s,
              const std::atomic<bool>* cancelled) {
    Request request;
    request.url = url;
    request.body = body;
    request.headers = headers;
    request.timeout_s = timeout_s;
    request.cancelled = cancelled;
    Exchange exchange = send(request);
    // An outage may be the answer of a proxy before the service.
    if (exchange.broken == Broken::no && !exchange.answer.body.has("status") && !is_outage(exchange.answer)) {
        exchange.broken = Broken::not_a_service;
        exchange.error = origin_of(url) + " is not a sign-on service";
    }
    return exchange;
}

std::string without_slash(std::string base_url) {
    while (!base_url.empty() && base_url.back() == '/') base_url.pop_back();
    return base_url;
}

namespace {
bool is_record(const std::string& text) {
    return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}
}  // namespace

Failure failure_of(const Exchange& exchange) {
    switch (exchange.broken) {
        case Broken::lost: return {Reason::unavailable, exchange.error, "", {}};
        case Broken::cancelled: return {Reason::cancelled, "the player gave up", "", {}};
        case Broken::not_a_service: return {Reason::not_a_service, exchange.error, "", {}};
        case Broken::no: break;
    }
    const long status = exchange.answer.status;
    const Json& body = exchange.answer.body;
    const std::string error = body["error"].text();
    if (error == "banned" && body["ban"].is_object()) {
        const Json& ban = body["ban"];
        Ban found{ban["reason"].text(), std::nullopt, ban["appeal_url"].text()};
        if (ban["until"].kind() == Json::Kind::number) found.until = static_cast<std::int64_t>(ban["until"].number());
        return {Reason::banned, "the player is banned", "", found};
    }
    if (error == "session denied") return {Reason::denied, error, "", {}};
    if (error == "session expired") return {Reason::expired, error, "", {}};
    if (error == "session closed") return {Reason::closed, error, "", {}};
    if (status == 401 || status == 403) return {Reason::refused, error, is_record(error) ? error : "", {}};
    if (status == 429 || status >= 500) return {Reason::unavailable, error, "", {}};
    return {Reason::invalid, error, "", {}};
}

bool is_outage(const Answer& answer) { return answer.status == 429 || (answer.status >= 502 && answer.status <= 504); }

bool is_event_stream(const Answer& answer) {
    const auto type = answer.headers.find("content-type");
    return answer.status == 200 && type != answer.headers.end() && type->second.rfind("text/event-stream", 0) == 0;
}

long retry_after_s(const Answer& answer) {
    const auto found = answer.headers.find("retry-after");
    if (found == answer.headers.end() || found->second.empty() ||
        found->second.find_first_not_of("0123456789") != std::string::npos) {
        return min_pause_s;
    }
    return found->second.size() > 4 ? max_pause_s : std::clamp(std::stol(found->second), min_pause_s, max_pause_s);
}

bool wait(double seconds, const std::atomic<bool>& cancelled) {
    using namespace std::chrono;
    const auto end = steady_clock::now() + duration<double>(seconds);
    while (steady_clock::now() < end) {
        if (cancelled) return false;
        const auto left = duration_cast<milliseconds>(end - steady_clock::now());
        std::this_thread::sleep_for(std::min(left + milliseconds(1), milliseconds(100)));
    }
    return !cancelled;
}

}  // namespace sso
