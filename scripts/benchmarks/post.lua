-- Posts a few forms in turn. TOKENS is a file with one form per line, ASK_PATH the endpoint.
local requests, at = {}, 0
local headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }

function init()
  for form in io.lines(os.getenv("TOKENS")) do
    requests[#requests + 1] = wrk.format("POST", os.getenv("ASK_PATH"), headers, form)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end
