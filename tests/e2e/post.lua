-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- wrk: POST a chat completion and count the statuses.
wrk.method = "POST"
wrk.body = '{"model":"demo","messages":[]}'
wrk.headers["Content-Type"] = "application/json"
local threads = {}
function setup(thread)
	table.insert(threads, thread)
end
function init()
	shed, other = 0, 0
end
function response(status)
	if status == 529 then shed = shed + 1 else other = other + 1 end
end
function done()
	local s, o = 0, 0
	for _, t in ipairs(threads) do
		s, o = s + t:get("shed"), o + t:get("other")
	end
	print(string.format("statuses: 529=%d other=%d", s, o))
end
