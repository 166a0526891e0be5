"""A Kubernetes cluster as its API tells it, turned into an inventory.

    reading     bytes of `kubectl get … -o json` -> objects, one by one
    objects     one object -> facts (what of it matters here), gathered in a `Listing`
    counting    a listing -> per node: devices, what is used, what closes it
    report      that, as people and scripts read it
    mapping     pods -> replicas of models, by rules
    document    all of it -> nodes, models and replicas in the form of the inventory

Nothing here writes, and nothing knows Django's settings or HTTP.
"""
