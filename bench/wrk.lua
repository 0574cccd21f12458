-- Cycles over the requests of a file (one per line: a path, and for a POST a tab and its body), and prints
-- the results as one line of JSON. Headers come from wrk -H.
local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local path, body = line:match("^([^\t]*)\t?(.*)$")
    if body == "" then
      requests[#requests + 1] = wrk.format("GET", path)
    else
      requests[#requests + 1] = wrk.format("POST", path, nil, body)
    end
  end
  at = tonumber(args[2]) % #requests
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50":%.6f,"p99":%.6f,"bytes":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    summary.bytes, e.connect + e.read + e.write + e.status + e.timeout))
end
