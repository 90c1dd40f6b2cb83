"""The paper's toy stream: five rules, one pass each, against the best fixed weights in hindsight."""

import onlinevi as ovi

toy = ovi.datasets.load("toy", seed=0)
best = ovi.hindsight(toy.X, toy.y, loss=ovi.Hinge())
print(f"best in hindsight: average loss {best.value:.4f}, certified to {best.gap:.0e}, weights {best.mean.round(3)}\n")

print(f"{'rule':8} {'average loss':>12} {'regret a step':>14}   weights ± std")
for rule in (ovi.OGA(), ovi.OGAEL(), ovi.SVA(), ovi.SVB(), ovi.NGVI()):
    trace = ovi.learn(toy.X, toy.y, loss=ovi.Hinge(), rule=rule)
    average = trace.average_loss[-1]
    weights = ", ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(trace.mean, trace.std, strict=True))
    print(f"{type(rule).__name__:8} {average:12.4f} {average - best.value:14.4f}   {weights}")
