"""Independent float64 reference for the accumulation cases.

Recomputes every `expect` value in the case files with plain numpy and
hand-written derivatives.  Nothing is accumulated over micro-batches unless the
model itself depends on them (batch statistics, random masks): each optimizer
step takes the whole window as one batch, sums the loss over every scored
element on every replica and divides once by the number of scored elements.

    python reference.py [folder]            check every case file in the folder
    python reference.py [folder] --print    also print the recomputed values
"""

import json
import math
import pathlib
import sys

import numpy as np

IGNORE = -100


def arr(x):
    return np.asarray(x, dtype=np.float64)


# ---------------------------------------------------------------- models
def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def labels_of(data, i):
    lab = data.get("labels")
    return lab[i] if lab else data["sequences"][i]


def lm_sums(P, data, idx, tied):
    E = P["embed"]
    W = E if tied else P["head"]
    V = W.shape[0]
    loss, n = 0.0, 0
    gE, gW = np.zeros_like(E), np.zeros_like(W)
    for i in idx:
        seq, lab = data["sequences"][i], labels_of(data, i)
        for t in range(len(seq) - 1):
            y = lab[t + 1]
            if y == IGNORE:
                continue
            h = np.tanh(E[seq[t]])
            lp = log_softmax(W @ h)
            target = np.zeros(V)
            target[y] = 1.0
            loss -= float(target @ lp)
            n += 1
            d = np.exp(lp) - target
            gW += np.outer(d, h)
            gE[seq[t]] += (W.T @ d) * (1.0 - h * h)
    grads = {"embed": gE + gW} if tied else {"embed": gE, "head": gW}
    return loss, n, grads


def linear_sums(P, x, y):
    r = x @ P["w"].T - y
    if "b" in P:
        r = r + P["b"]
    g = {"w": 2.0 * r.T @ x}
    if "b" in P:
        g["b"] = 2.0 * r.sum(axis=0)
    return float((r * r).sum()), r.size, g


def mlp_sums(P, x, y):
    h = np.tanh(x @ P["w1"].T + P["b1"])
    r = h @ P["w2"].T + P["b2"] - y
    dh = (2.0 * r @ P["w2"]) * (1.0 - h * h)
    g = {"w1": dh.T @ x, "b1": dh.sum(axis=0), "w2": 2.0 * r.T @ h, "b2": 2.0 * r.sum(axis=0)}
    return float((r * r).sum()), r.size, g


def branch_sums(P, x, y, route):
    route = route[:, None]
    r = x @ P["a"].T + route * (x @ P["b"].T) - y
    g = {"a": 2.0 * r.T @ x, "b": None}
    if route.any():
        g["b"] = 2.0 * (r * route).T @ x
    return float((r * r).sum()), r.size, g


def add(a, b):
    out = dict(a)
    for k, v in b.items():
        if v is not None:
            out[k] = v if out.get(k) is None else out[k] + v
        else:
            out.setdefault(k, None)
    return out


def window_sums(given, P, window, state):
    """Sum of losses, number of scored elements and summed gradients of a window."""
    m, data = given["model"], given["data"]
    kind = m["kind"]
    idx = [i for _, _, mb in window for i in mb]
    if kind in ("lm", "lm_tied"):
        return lm_sums(P, data, idx, kind == "lm_tied")
    x = arr(data["x"])
    y = arr(data["y"])
    if kind == "linear":
        return linear_sums(P, x[idx], y[idx])
    if kind == "mlp":
        return mlp_sums(P, x[idx], y[idx])
    if kind == "branch":
        return branch_sums(P, x[idx], y[idx], arr(data["route"])[idx])
    total, n, grads = 0.0, 0, {}
    for _, _, mb in window:  # models that see micro-batches
        xb = x[mb]
        if kind == "batchnorm_linear":
            mean, var = xb.mean(axis=0), xb.var(axis=0)
            mom = m["bn_momentum"]
            state["bn_mean"] = (1 - mom) * state["bn_mean"] + mom * mean
            state["bn_var"] = (1 - mom) * state["bn_var"] + mom * xb.var(axis=0, ddof=1)
            state["bn_count"] += 1
            xb = (xb - mean) / np.sqrt(var + m["bn_eps"])
        if kind == "dropout_linear":
            mask = np.empty(xb.shape)
            for pos in np.ndindex(*xb.shape):  # row-major order
                state["rng"] = (1664525 * state["rng"] + 1013904223) % 2**32
                mask[pos] = 1.0 if state["rng"] / 2**32 >= m["p"] else 0.0
            xb = xb * mask / (1.0 - m["p"])
        s, c, g = linear_sums(P, xb, y[mb])
        total, n, grads = total + s, n + c, add(grads, g)
    return total, n, grads


# ---------------------------------------------------------------- windows
def make_windows(given):
    """List of (epoch, [(replica, micro_batch_number, [samples])]) in step order."""
    if "global_batch" in given:
        order, gb = given["order"], given["global_batch"]
        return [(0, [(0, 0, order[i : i + gb])]) for i in range(0, len(order), gb)]
    st, acc = given["stream"], given["accumulation"]
    reps = st["replicas"]
    out = []
    for e in range(st.get("epochs", 1)):
        ks = acc["steps"]
        ks = ks if isinstance(ks, list) else [ks] * len(reps)
        count = max(math.ceil(len(r) / k) for r, k in zip(reps, ks))
        for w in range(count):
            win = []
            for r, (mbs, k) in enumerate(zip(reps, ks)):
                win += [(r, w * k + j, mb) for j, mb in enumerate(mbs[w * k : (w + 1) * k])]
            out.append((e, win))
    return out


def is_bad(given, epoch, window):
    for inj in given.get("inject", []):
        for r, n, _ in window:
            if (inj["epoch"], inj["replica"], inj["micro_batch"]) == (epoch, r, n):
                return True
    return False


# ---------------------------------------------------------------- update rules
def lr_at(given, step, samples_seen, window_samples):
    base, s = given["optimizer"]["lr"], given.get("schedule")
    if not s:
        return base
    if s["kind"] == "warmup_linear":
        w, T = s["warmup_steps"], s["total_steps"]
        return base * (step + 1) / w if step < w else base * max(0.0, (T - step) / (T - w))
    raise ValueError(s["kind"])


def apply_update(given, P, G, S, lr):
    o = given["optimizer"]
    for k in P:
        g = G.get(k)
        if g is None:
            continue
        st = S.setdefault(k, {"t": 0})
        st["t"] += 1
        wd = o.get("weight_decay", 0.0)
        if o["kind"] == "sgd":
            g = g + wd * P[k]
            mu = o.get("momentum", 0.0)
            if mu:
                st["buf"] = g if "buf" not in st else mu * st["buf"] + g
                g = st["buf"]
            P[k] = P[k] - lr * g
        else:
            b1, b2 = o["betas"]
            st["m"] = b1 * st.get("m", 0.0) + (1 - b1) * g
            st["v"] = b2 * st.get("v", 0.0) + (1 - b2) * g * g
            P[k] = P[k] * (1 - lr * wd)
            P[k] = P[k] - lr / (1 - b1 ** st["t"]) * st["m"] / (np.sqrt(st["v"] / (1 - b2 ** st["t"])) + o["eps"])


def train(given):
    m = given["model"]
    P = {k: arr(v) for k, v in m["params"].items()}
    frozen = set(m.get("frozen", []))
    S = {}
    state = {"rng": m.get("rng_seed", 0)}
    if m["kind"] == "batchnorm_linear":
        n = arr(given["data"]["x"]).shape[1]
        state.update(bn_mean=np.zeros(n), bn_var=np.ones(n), bn_count=0)
    sc = given.get("scaler")
    scale, good = (sc["init_scale"], 0) if sc else (1.0, 0)
    rec = {k: [] for k in ("lr_used", "grad_norm", "window_loss", "samples_per_step", "scale_used")}
    skipped, seen = 0, 0
    for epoch, win in make_windows(given):
        nsamp = sum(len(mb) for _, _, mb in win)
        total, n, G = window_sums(given, P, win, state)
        if sc:
            rec["scale_used"].append(scale)
        if n == 0 or is_bad(given, epoch, win):
            skipped += 1
            if sc and n:
                scale, good = scale * sc["backoff_factor"], 0
            continue
        lr = lr_at(given, len(rec["lr_used"]), seen, nsamp)
        seen += nsamp
        G = {k: (None if v is None or k in frozen else v / n) for k, v in G.items()}
        norm = math.sqrt(sum(float((g * g).sum()) for g in G.values() if g is not None))
        limit = given.get("clip_max_norm")
        if limit is not None and norm > limit:
            G = {k: None if g is None else g * (limit / norm) for k, g in G.items()}
        apply_update(given, P, G, S, lr)
        rec["lr_used"].append(lr)
        rec["grad_norm"].append(norm)
        rec["window_loss"].append(total / n)
        rec["samples_per_step"].append(nsamp)
        if sc:
            good += 1
            if good == sc["growth_interval"]:
                scale, good = scale * sc["growth_factor"], 0
    rec.update(params=P, optimizer_steps=len(rec["lr_used"]), windows_skipped=skipped, scale_end=scale)
    rec["finite"] = all(bool(np.isfinite(v).all()) for v in P.values())
    rec["optimizer_state_steps"] = {k: S[k]["t"] for k in S}
    if "bn_mean" in state:
        rec.update(
            bn_running_mean=state["bn_mean"], bn_running_var=state["bn_var"], bn_batches_tracked=state["bn_count"]
        )
    rec["micro_batches"] = sum(len(w) for _, w in make_windows(given))
    rec["gradient_sync_rounds"] = rec["optimizer_steps"]
    rec["elements_reduced_per_replica"] = rec["optimizer_steps"] * sum(v.size for v in P.values())
    rec["replica_max_difference"] = 0.0
    cp = given.get("checkpoint")
    if cp and "after_optimizer_step" in cp:
        rest = make_windows(given)[cp["after_optimizer_step"] :]
        rec["samples_after_resume"] = [i for _, w in rest for _, _, mb in w for i in mb]
    if "stream" in given:
        uses = {}
        for _, w in make_windows(given):
            for _, _, mb in w:
                for i in mb:
                    uses[i] = uses.get(i, 0) + 1
        rec["times_each_sample_used"] = [uses[i] for i in sorted(uses)]
    if "world_phases" in given:
        plan = []
        for ph in given["world_phases"]:
            parts = math.ceil(given["global_batch"] / given["micro_batch"])
            plan.append(sorted((len(range(r, parts, ph["world"])) for r in range(ph["world"])), reverse=True))
        rec["micro_batches_per_replica"] = plan
    return rec


# ---------------------------------------------------------------- counters only


RUNNERS = {"train": train}


def compute(given):
    return RUNNERS[given.get("kind", "train")](given)


# ---------------------------------------------------------------- comparison
def differences(want, got, tol, path=""):
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return [f"{path}: not a mapping"]
        return [
            d
            for k in want
            for d in (differences(want[k], got[k], tol, f"{path}.{k}") if k in got else [f"{path}.{k}: missing"])
        ]
    if isinstance(want, list):
        got = got.tolist() if isinstance(got, np.ndarray) else got
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return [f"{path}: want {want}, got {got}"]
        return [d for i, (w, g) in enumerate(zip(want, got)) for d in differences(w, g, tol, f"{path}[{i}]")]
    if isinstance(want, (bool, int, str)) or want is None:
        return [] if want == got else [f"{path}: want {want}, got {got}"]
    return [] if abs(want - float(got)) <= tol else [f"{path}: want {want}, got {got}"]


def load(folder):
    return [json.loads(p.read_text()) for p in sorted(pathlib.Path(folder).glob("[0-9]*.json"))]


def main(argv):
    show = "--print" in argv
    args = [a for a in argv if not a.startswith("--")]
    folder = args[0] if args else pathlib.Path(__file__).resolve().parent
    failed, cases = 0, load(folder)
    for c in cases:
        got = compute(c["given"])
        diff = differences(c["expect"], got, 1e-9)
        failed += bool(diff)
        print(("ok   " if not diff else "FAIL ") + c["id"] + "".join("\n       " + d for d in diff))
        if show:
            print({k: np.asarray(got[k]).tolist() if not isinstance(got[k], dict) else got[k] for k in c["expect"]})
    print(f"{len(cases) - failed} of {len(cases)} cases agree with the reference")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
