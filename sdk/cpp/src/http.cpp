#include "http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace sso {

namespace {
constexpr std::size_t max_answer = 1 << 20;

struct Received {
    std::string content;
    std::map<std::string, std::string> headers;
};

std::size_t on_content(char* data, std::size_t size, std::size_t count, void* target) {
    auto& content = static_cast<Received*>(target)->content;
    if (content.size() + size * count > max_answer) return 0;
    content.append(data, size * count);
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
        static_cast<Received*>(target)->headers[name] = is_empty ? "" : line.substr(begin, end - begin + 1);
    }
    return size * count;
}

int on_progress(void* cancelled, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<const std::atomic<bool>*>(cancelled)->load() ? 1 : 0;
}

std::string origin_of(const std::string& url) {
    const auto path = url.find('/', url.find("://") + 3);
    return url.substr(0, path);
}
}  // namespace

Exchange post(const std::string& url, const std::string& body, const Headers& headers, long timeout_s,
              const std::atomic<bool>* cancelled) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    Exchange exchange;
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    for (const auto& header : headers) list = curl_slist_append(list, header.c_str());
    list = curl_slist_append(list, "Expect:");
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> owned(list, curl_slist_free_all);
    Received received;
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, timeout_s);
    curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 15L);
    curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_content);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &received);
    curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &received);
    if (cancelled) {
        curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(cancelled));
    }
    const CURLcode code = curl_easy_perform(curl.get());
    if (code != CURLE_OK) {
        exchange.broken = code == CURLE_ABORTED_BY_CALLBACK ? Broken::cancelled : Broken::lost;
        exchange.error = curl_easy_strerror(code);
        return exchange;
    }
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &exchange.answer.status);
    exchange.answer.headers = std::move(received.headers);
    const auto parsed = Json::parse(received.content);
    if (parsed && parsed->has("status")) {
        exchange.answer.body = *parsed;
    } else if (!is_outage(exchange.answer)) {  // an outage may be the answer of a proxy before the service
        exchange.broken = Broken::not_a_service;
        exchange.error = origin_of(url) + " is not a sign-on service";
    }
    return exchange;
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

bool is_outage(const Answer& answer) { return answer.status >= 502 && answer.status <= 504; }

long retry_after_s(const Answer& answer) {
    const auto found = answer.headers.find("retry-after");
    if (found == answer.headers.end() || found->second.empty() || found->second.size() > 4 ||
        found->second.find_first_not_of("0123456789") != std::string::npos) {
        return 1;
    }
    return std::stol(found->second);
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
