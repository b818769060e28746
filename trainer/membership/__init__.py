"""Who is in the run: the agreed store's content and conditions, who hears whom, who is away. Pure; etcd at its edge."""
