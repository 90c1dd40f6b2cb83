"""The theorems, one file a rule: the bounds as functions of plain numbers, then which rule and rates each is for.

A function without ``observed`` in its name needs no data. One with it takes the gradients that came in place of L², and one
with ``adaptive`` is for rates made of these: ``gradient_square`` is Σ‖g_t‖² and ``largest_gradient`` max ‖g_t‖, as a state
keeps them; before data they are at most L²·T and L, and every such bound grows with both.

Each bounds the regret Σ E_{q_t}[ℓ_t] − Σ E_{q_u}[ℓ_t] of beliefs q_t against a comparator q_u in the domain, hence for convex
losses also that of the decisions, Σ ℓ_t(θ̂_t) − Σ E_{q_u}[ℓ_t] with θ̂_t the mean of q_t. ``lipschitz`` is L, the longest
gradient of an expected loss in (mean, std); ``count`` is T; ``kl`` is KL(q_u‖prior). ``printed=True`` gives the paper's
statement where that is not what holds; docs/errata.md says why, and docs/guarantees.md has the proofs.
"""
