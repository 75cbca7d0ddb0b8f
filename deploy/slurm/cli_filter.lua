-- Shows what Stepcast predicts before a job is submitted: for CliFilterPlugins=cli_filter/lua.
--
-- A job that names a profile, by --comment=stepcast:profile=NAME[;objective=...] or STEPCAST_PROFILE, and has a range of
-- nodes gets the table of `stepcast recommend`. Nothing is changed, nothing is refused, and whatever fails is not said.
-- Runs on the user's side, for half a second at most: STEPCAST_SERVER and the other variables of `stepcast` say which
-- server. It asks as the plugin of slurmctld does, so that what either has asked is answered at once; a new question is
-- answered the next time, since a simulation takes longer. STEPCAST_SHOW=0 switches it off.

local TIMEOUT = "300ms"
local MAX_LINES = 30

local unpack_list = table.unpack or unpack  -- of Lua 5.3, of 5.1

-- A word for the shell: in single quotes, which nothing within can end.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The fields of a comment; nil where it is none for Stepcast. What is not plain is not asked about.
local function fields_of(comment)
  local text = (" " .. comment):match(" stepcast:(%S+)")
  if text == nil or #text > 1024 then return nil end
  local fields = {}
  for field in text:gmatch("[^;]+") do
    local key, value = field:match("^([a-z-]+)=([%w.=/+-]+)$")
    if key == nil or fields[key] ~= nil then return nil end
    fields[key] = value
  end
  return fields
end

-- A number as the plugin reads it, 8e-1 too, for a pattern; never a flag.
local NUMBER = "%.?%d[%d.eE+-]*"

-- The flags of an objective; nil where it is none.
local function objective_flags(objective)
  local plain = {knee = "knee", throughput = "max-throughput", cost = "min-cost"}
  objective = objective or "knee"
  if plain[objective] ~= nil then return {"--objective", plain[objective]} end
  local share = objective:match("^efficiency=(" .. NUMBER .. ")$")
  if share ~= nil then return {"--objective", "max-throughput", "--min-efficiency", share} end
  local time = objective:match("^deadline=([%d.]+[dhms][%d.dhms]*)$")
  if time ~= nil then return {"--objective", "min-cost", "--deadline", time} end
  return nil
end

-- The range of --nodes=2-16; nil where there is none.
local function range_of(nodes)
  local least, most = tostring(nodes or ""):match("^(%d+)%-(%d+)$")
  least, most = tonumber(least), tonumber(most)
  if least == nil or most == nil or least < 1 or most <= least or most > 4096 then return nil end
  return least, most
end

-- Workers of a node, as the plugin has it with workers-per-node: auto; nil where that is not plain.
local function workers_of(options)
  local gpus = 0
  for _, list in ipairs({tostring(options["gres"] or ""), tostring(options["gpus-per-node"] or "")}) do
    for word in list:gmatch("[^,]+") do
      word = word:gsub("^gres[:/]", "")
      if list == tostring(options["gpus-per-node"] or "") and not word:match("^gpu") then word = "gpu:" .. word end
      local rest = word == "gpu" and "" or word:match("^gpu[:=](.+)$")
      if rest ~= nil then gpus = gpus + (tonumber(rest:match("[^:=]*$")) or 1) end
    end
  end
  local tasks = tonumber(options["ntasks-per-node"]) or 1
  if gpus > 0 then return gpus end
  -- Options that are not given are below zero there.
  return tasks > 0 and tasks or 1
end

-- The shell's command for a job; nil where there is nothing to ask.
local function command_of(comment, profile, nodes, per_node)
  local fields = fields_of(comment or "") or {profile = profile}
  local name = (fields.profile or ""):gsub("^profiles/", "")
  if not name:match("^[a-z][a-z0-9-]*$") or #name > 63 then return nil end
  local least, most = range_of(nodes)
  local flags = objective_flags(fields.objective)
  per_node = tonumber(fields["workers-per-node"] or per_node)
  if least == nil or flags == nil or per_node == nil or per_node < 1 or per_node % 1 ~= 0 then return nil end
  most = math.min(most, math.floor(4096 / per_node), least + math.floor(256 / per_node))
  if most <= least then return nil end
  local worker_hour, node_hour = fields["worker-hour"], fields["node-hour"]
  for _, key in ipairs({"examples", "worker-hour", "node-hour"}) do
    if fields[key] ~= nil and not fields[key]:match("^" .. NUMBER .. "$") then return nil end
  end
  local function asked(...)
    local words = {"stepcast", "recommend", "profiles/" .. name, "--timeout", TIMEOUT, ...}
    for _, flag in ipairs(flags) do words[#words + 1] = flag end
    -- The least worker hours, of a deadline.
    if (fields.objective or ""):match("^deadline") and not node_hour then worker_hour = worker_hour or "1" end
    for flag, value in pairs({["--examples"] = fields.examples, ["--worker-hour"] = worker_hour, ["--node-hour"] = node_hour}) do
      words[#words + 1] = flag
      words[#words + 1] = value
    end
    for i, word in ipairs(words) do words[i] = quoted(word) end
    return table.concat(words, " ")
  end
  local bounds = {"--min-workers", tostring(least * per_node), "--max-workers", tostring(most * per_node)}
  local script
  if per_node == 1 then
    script = "exec " .. asked(unpack_list(bounds)) .. " 2>/dev/null"
  else
    local intra = {}
    if fields["intra-bandwidth"] ~= nil then
      local number, unit = fields["intra-bandwidth"]:match("^(" .. NUMBER .. ")([kMGT]?[Bbit]*/?s?)$")
      if number == nil then return nil end
      -- A bare number is of bytes per second.
      intra = {"--intra-bandwidth", number .. (unit == "" and "B/s" or unit)}
    end
    bounds[#bounds + 1] = "--workers-per-node"
    bounds[#bounds + 1] = tostring(per_node)
    for _, word in ipairs(intra) do bounds[#bounds + 1] = word end
    local collectives = asked(unpack_list(bounds))
    -- Parameter servers know no nodes: full ones are listed, and what one costs is of its workers.
    local counts = {}
    for nodes_of_job = least, most do counts[#counts + 1] = tostring(nodes_of_job * per_node) end
    if node_hour ~= nil then
      worker_hour = string.format("%.17g", (tonumber(worker_hour) or 0) + tonumber(node_hour) / per_node)
      node_hour = nil
    end
    script = "exec 3>&1; errors=$(" .. collectives .. " 2>&1 >&3) && exit 0; case \"$errors\" in "
      .. "*'--workers-per-node: belongs to collectives'*) exec " .. asked("--workers", table.concat(counts, ","))
      .. " 2>/dev/null;; esac; exit 1"
  end
  -- Its status comes last, since Lua 5.1 does not tell it. `timeout` ends a program that hangs.
  return "timeout --kill-after=0.1 0.5 sh -c " .. quoted(script) .. " 2>/dev/null </dev/null; echo $?"
end

-- True of a job whose size something else fixes, about which the plugin is silent. --ntasks=1 is also what stands there without.
local function has_fixed_size(options)
  for _, name in ipairs({"nodelist", "nodefile", "gpus", "gpus-per-task"}) do
    if tostring(options[name] or "") ~= "" then return true end
  end
  return (tonumber(options["ntasks"]) or 1) > 1 or (tonumber(options["ntasks-per-gpu"]) or 0) > 0
end

local function show(options)
  if os.getenv("STEPCAST_SHOW") == "0" or has_fixed_size(options) then return end
  local command = command_of(options["comment"], os.getenv("STEPCAST_PROFILE"), options["nodes"], workers_of(options))
  if command == nil then return end
  local pipe = io.popen(command, "r")
  if pipe == nil then return end
  local lines = {}
  for line in pipe:lines() do
    if #lines > MAX_LINES then break end
    lines[#lines + 1] = line
  end
  pipe:close()
  if table.remove(lines) ~= "0" then return end
  for _, line in ipairs(lines) do io.stderr:write("stepcast: ", line, "\n") end
end

function slurm_cli_setup_defaults(options, early_pass)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, pack_offset)
  pcall(show, options)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return slurm.SUCCESS
end
