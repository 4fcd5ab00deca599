import sys, threading, pathlib, random
sys.path.insert(0,'/work/main')
import pytest
from tests.functional.api import test_fleet as t
from tests.functional.api.test_fleet import *
def test_shots(house, url, browser, tmp_path):
    t._five_states(house)
    house.vip(name="front door"); house.agents.error="the disk is full: /var/lib/lbaas-scheduler/haproxy"; house.vip(name="stuck")
    out=pathlib.Path('/tmp/shots'); out.mkdir(exist_ok=True)
    for scheme in ('light','dark'):
        browser.prefer(scheme); t._open(browser,url+''); browser.screenshot(out/f'five-{scheme}.png')
    browser.press("/"); browser.press("Escape"); browser.evaluate(f"{t.TILES}[0].click()"); browser.screenshot(out/'details.png'); browser.press("Escape")
    from lbaas_scheduler.db import models
    import sqlalchemy as sa
    for n in range(500):
        t._device(house, f"lb-{n:03}", zone=f"rack{n%4}", capacity={"VIPS":10}, admin_state={7:"draining",8:"disabled"}.get(n%50,"enabled"))
    with house.database.engine.begin() as c:
        rows=c.execute(sa.select(models.device_load.c.device_id)).scalars().all()
        for r in rows:
            u=random.randint(0,10); c.execute(sa.update(models.device_load).where(models.device_load.c.device_id==r).values(vips_used=u,rank=u*1000,open=int(u<10)))
        for r in random.sample(rows,12): c.execute(sa.update(models.devices).where(models.devices.c.id==r).values(status="OFFLINE"))
    for scheme in ('light','dark'):
        browser.prefer(scheme); t._open(browser,url+''); browser.screenshot(out/f'many-{scheme}.png'); print(browser.evaluate("document.getElementById('zones').getBoundingClientRect().height / innerHeight"))
    import time
    b=time.perf_counter(); r=house.get(t.OVERVIEW, t.ADMIN); print('ms',(time.perf_counter()-b)*1000, len(r.text)); 
