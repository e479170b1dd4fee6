-- Requests userinfo with a few access tokens in turn. TOKENS is a file with the tokens, ASK_PATH the endpoint.
local requests, at = {}, 0

function init()
  for token in io.lines(os.getenv("TOKENS")) do
    requests[#requests + 1] = wrk.format("GET", os.getenv("ASK_PATH"), { ["Authorization"] = "Bearer " .. token })
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end
