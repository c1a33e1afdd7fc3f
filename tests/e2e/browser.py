#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless Chromium for a shell: reads commands from standard input, one a line, and answers each
with a line of JSON: {"is": VALUE} or {"error": TEXT}. Speaks DevTools over a pair of pipes.

  open URL                 goes there and waits until it is loaded
  size WIDTH HEIGHT light|dark
  eval EXPRESSION          its value
  wait SECONDS EXPRESSION  until it is true; its value. An error when it is not in time
  shot FILE                a picture of what is in the window
  errors                   what the page has complained of so far: console, exceptions, policy
  hosts                    every scheme and host that was asked, or would have been
"""
import base64
import json
import os
import select
import subprocess
import sys
import time
import urllib.parse

PATIENCE_S = 60  # for one answer, on a machine with much else to do

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions
    --hide-scrollbars --mute-audio --remote-debugging-pipe""".split()


class Browser:
    def __init__(self, profile):
        # The browser reads from its descriptor 3 and writes to 4
        reads, self.to = os.pipe()
        self.of, writes = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{reads} 4>&{writes}', "chromium", *FLAGS,
             f"--user-data-dir={profile}", "about:blank"],
            env=dict(os.environ, TMPDIR=os.path.dirname(profile)),  # it leaves files there
            pass_fds=(reads, writes), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(reads)
        os.close(writes)
        self.rest, self.last, self.session = b"", 0, None
        self.loaded, self.errors, self.hosts = False, [], set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def read(self, end):
        while b"\0" not in self.rest:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.of, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        params = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description")
                                   or details["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(a.get("value", a.get("description")))
                                            for a in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                url = urllib.parse.urlsplit(params["request"]["url"])
                self.hosts.add(f"{url.scheme}://{url.netloc}")

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = self.read(end)
            if answer.get("id") != self.last:
                self.note(answer)
            elif "error" in answer:
                raise RuntimeError(answer["error"]["message"])
            else:
                return answer["result"]

    def open(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE_S
        while not self.loaded:
            self.note(self.read(end))
        return url

    def eval(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def wait(self, seconds, expression):
        end = time.monotonic() + float(seconds)
        while True:
            value = self.eval(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {expression}")
            time.sleep(0.05)

    def size(self, width, height, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=int(width), height=int(height),
                  deviceScaleFactor=1, mobile=int(width) < 500)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(picture))
        return path

    def run(self, line):
        name, _, rest = line.partition(" ")
        match name:
            case "open": return self.open(rest)
            case "size": return self.size(*rest.split())
            case "eval": return self.eval(rest)
            case "wait": return self.wait(*rest.split(" ", 1))
            case "shot": return self.shot(rest)
            case "errors": return self.errors
            case "hosts": return sorted(self.hosts)
        raise ValueError(f"no command {name}")


def main():
    browser = Browser(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = {"is": browser.run(line.rstrip("\n"))}
        except (RuntimeError, TimeoutError, ValueError, TypeError) as e:
            answer = {"error": str(e)}
        print(json.dumps(answer), flush=True)
    browser.process.terminate()
    browser.process.wait(10)


if __name__ == "__main__":
    main()
