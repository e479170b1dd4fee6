from tests.perm.endpoints.conftest import Studio
import time
def test_probe(studio: Studio) -> None:
    t=time.time(); p = studio.person(); print("person", time.time()-t)
    t=time.time(); pr = studio.project(p); print("project", time.time()-t)
    t=time.time(); a = studio.application(pr); print("app", time.time()-t)
    t=time.time()
    for _ in range(100): studio.root.call("user/info")
    print("100 info", time.time()-t)
    t=time.time()
    for _ in range(100): studio.root.call("meta/data", action="get", application_id=1, data={})
    print("100 get", time.time()-t)
    print(studio.root.call("meta/data", action="get", application_id=1, data={}))
