-- Refreshes tokens: each request takes the oldest free token, each response adds its successor.
-- For one thread of wrk, with more tokens than connections. BODY is the form up to the value of the token, HEADERS has one
-- header per line.
local queue, first, last = {}, 1, 0
local body, path = os.getenv("BODY"), os.getenv("ASK_PATH")
local headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }

for name, value in (os.getenv("HEADERS") or ""):gmatch("([^:\n]+): ([^\n]+)") do
  headers[name] = value
end

for token in io.lines(os.getenv("TOKENS")) do
  last = last + 1
  queue[last] = token
end

local function escaped(text)
  return (text:gsub("[^%w%-%._~]", function(c) return string.format("%%%02X", c:byte()) end))
end

function request()
  local token = queue[first]
  if not token then return wrk.format("GET", "/no-token-left") end
  queue[first] = nil
  first = first + 1
  return wrk.format("POST", path, headers, body .. escaped(token))
end

function response(status, _, answer)
  local token = status == 200 and answer:match('"refresh_token"%s*:%s*"([^"]+)"')
  if token then
    last = last + 1
    queue[last] = token
  end
end
